"""Values from outside in messages: `repr` of an integer with thousands of digits is refused by Python, and nobody reads it."""

from __future__ import annotations

_LONGEST = 60  # characters of a value: a number of every type fits


def shown_value(value: object) -> str:
    """What Python prints for a value, at most 60 characters: `3.5`, or `an integer of 16610 bits`."""
    if isinstance(value, int) and value.bit_length() > 3 * _LONGEST:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:  # such an integer is inside
        return f"a `{type(value).__name__}`"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


__all__ = ["shown_value"]
