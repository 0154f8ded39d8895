"""What is said to the user: the data of a message, its codes, its rendering, the error index.

Comes in: spans and words from every other folder. Goes out: `Diagnostic` values and text.
Nothing here knows what a message is about.
"""

import sys

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
from .render import NARROW, PAGE, WIDE, explain, index_sections, render, shown_line, shown_text
from .uncaught import hook, users_frames
from .values import shown_value
from .warn import DiagnosticWarning, warn

__all__ = [
    "NARROW",
    "NO_SPAN",
    "PAGE",
    "WIDE",
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
    "shown_line",
    "shown_text",
    "shown_value",
    "users_frames",
    "warn",
]

# Python asks for what is shown of an error that ends a script or a line of the prompt in this one place
sys.excepthook = hook(sys.excepthook)
