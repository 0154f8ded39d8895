"""What is said to the user: the data of a message, its codes, its rendering, the error index.

Comes in: spans and words from every other folder. Goes out: `Diagnostic` values and text.
Nothing here knows what a message is about.
"""

from . import codes
from .diagnostic import (
    NO_SPAN,
    CallError,
    Code,
    CompileError,
    Diagnostic,
    Edit,
    Fix,
    Label,
    Severity,
    SourceText,
    Span,
)
from .nearest import edit_distance, nearest
from .render import explain, index_sections, render
from .warn import DiagnosticWarning, warn

__all__ = [
    "NO_SPAN",
    "CallError",
    "Code",
    "CompileError",
    "Diagnostic",
    "DiagnosticWarning",
    "Edit",
    "Fix",
    "Label",
    "Severity",
    "SourceText",
    "Span",
    "codes",
    "edit_distance",
    "explain",
    "index_sections",
    "nearest",
    "render",
    "warn",
]
