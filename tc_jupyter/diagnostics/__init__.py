"""What is said to the user: the data of a message, its codes, its rendering, the error index.

Comes in: spans and words from every other folder. Goes out: `Diagnostic` values and text. Nothing here knows what a message is about.
"""

from .diagnostic import (
    NO_SPAN,
    Code,
    CallError,
    CompileError,
    Diagnostic,
    Edit,
    Fix,
    Label,
    Severity,
    SourceText,
    Span,
)

__all__ = [
    "NO_SPAN",
    "CallError",
    "Code",
    "CompileError",
    "Diagnostic",
    "Edit",
    "Fix",
    "Label",
    "Severity",
    "SourceText",
    "Span",
]
