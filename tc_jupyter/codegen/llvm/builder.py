"""Text of one LLVM function: types, operands, names, blocks, and a place for code that is moved out of loops.

Worked example: adding 1 to an `int64` operand appends `%t = add i64 %i, 1` to the current block and returns the operand `%t`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tc_jupyter.program import DType

Lines: TypeAlias = "list[str | Lines]"

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: the text `%name` or a literal, its element type, and how many lanes it has (1: a scalar).

    16-bit floats are held as `float` operands that were already rounded; `bool` is `i1`. `stored` is what was loaded for them, if
    they are no more than that.
    """

    text: str
    dtype: DType
    lanes: int = 1
    stored: str = ""

    @property
    def type(self) -> str:
        """The LLVM type."""
        return _type(self.dtype, self.lanes)

    @property
    def typed(self) -> str:
        """The operand with its type in front."""
        return f"{self.type} {self.text}"

    @property
    def integer(self) -> int | None:
        """The value of an integer literal."""
        if self.lanes == 1 and self.dtype.is_integer and not self.text.startswith("%"):
            return int(self.text)
        return None


@lru_cache(maxsize=256)
def _type(dtype: DType, lanes: int) -> str:
    return vector_type(register_type(dtype), lanes)


def register_type(dtype: DType) -> str:
    """LLVM type of a value of `dtype` in a register."""
    if dtype is DType.BOOL:
        return "i1"
    if dtype is DType.FLOAT64:
        return "double"
    return "float" if dtype.is_float else f"i{dtype.bits}"


def memory_type(dtype: DType) -> str:
    """LLVM type of an element in memory."""
    if dtype is DType.BOOL:
        return "i8"
    if dtype is DType.FLOAT16:
        return "half"
    return "i16" if dtype is DType.BFLOAT16 else register_type(dtype)


def vector_type(element: str, lanes: int) -> str:
    """`<8 x float>`, or the element type itself for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def float_literal(value: float, dtype: DType) -> str:
    """The hexadecimal spelling of a number; `float` literals are written as the `double` of the same value."""
    if dtype is not DType.FLOAT64 and value == value and abs(value) != float("inf"):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return "0x7FF8000000000000" if value != value else f"0x{bits:016X}"


def literal(value: float | bool, dtype: DType) -> str:
    """The spelling of a constant of type `dtype`; integers wrap."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        return float_literal(float(value), dtype)
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    return str(wrapped - (1 << dtype.bits) if wrapped >> (dtype.bits - 1) else wrapped)


def constant(value: float | bool, dtype: DType, lanes: int = 1) -> Value:
    """A constant, the same in all lanes."""
    text = literal(value, dtype)
    return Value(text if lanes == 1 else f"splat ({register_type(dtype)} {text})", dtype, lanes)


def numbers(lanes: Iterable[int], kind: str = "i32") -> str:
    """A constant with a number of its own in each lane, without its type."""
    return f"<{', '.join(f'{kind} {number}' for number in lanes)}>"


def index(value: int) -> Value:
    """An `int64` constant."""
    return constant(value, DType.INT64)


def clean(name: str) -> str:
    """A name that LLVM accepts, as close to the given one as possible: a number in front would be an unnamed value."""
    plain = _UNSAFE.sub("_", name) or "_"
    return f"t{plain}" if plain[0].isdigit() else plain


def flatten(lines: Lines) -> Iterator[str]:
    """The lines in order."""
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from flatten(line)


class Builder:
    """Appends instructions to the text of a function.

    `lines` is the place where code goes now; a nested list is a place kept open for code that is moved there later. `entry` takes
    the stack slots, `declares` the external functions of the module. Comments are left out while `quiet` is not 0: a loop that is
    written out explains its first iteration. `scales`: whether the processor multiplies lanes by powers of two (AVX-512).
    """

    def __init__(self, scales: bool = False) -> None:
        self.scales = scales
        self.entry: Lines = []
        self.lines: Lines = []
        self.block = "entry"
        self.quiet = 0
        self.declares: dict[str, str] = {}
        self._used: dict[str, int] = {}

    def name(self, hint: str) -> str:
        """A fresh name without `%`."""
        name = clean(hint)
        while count := self._used.get(name, 0):
            self._used[name] = count + 1
            name = f"{name}.{count}"
        self._used[name] = 1
        return name

    def line(self, text: str) -> None:
        """Append one line to the current place."""
        self.lines.append("  " + text)

    def comment(self, text: str) -> None:
        """Append a comment."""
        if not self.quiet:
            self.lines.append("  ; " + text.replace("\n", " "))

    def op(self, text: str, dtype: DType, lanes: int = 1, hint: str = "t") -> Value:
        """Append `%fresh = text` and return the operand."""
        name = "%" + self.name(hint)
        self.line(f"{name} = {text}")
        return Value(name, dtype, lanes)

    def raw(self, text: str, hint: str = "t") -> str:
        """As `op` for results that are no `Value` (pointers, storage types)."""
        name = "%" + self.name(hint)
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        """Start the block `name`, which must be fresh."""
        self.lines.append(f"{name}:")
        self.block = name

    def branch(self, target: str) -> None:
        """Leave the block to `target`."""
        self.line(f"br label %{target}")

    def branch_if(self, condition: Value, then: str, otherwise: str) -> None:
        """Leave the block by a condition."""
        self.line(f"br i1 {condition.text}, label %{then}, label %{otherwise}")

    def phi(self, first: Value, first_block: str, second: Value, second_block: str, hint: str = "phi") -> Value:
        """Merge two operands of the same type."""
        text = f"phi {first.type} [ {first.text}, %{first_block} ], [ {second.text}, %{second_block} ]"
        return self.op(text, first.dtype, first.lanes, hint)

    def slot(self, element: str, count: int, align: int, hint: str) -> str:
        """A stack slot of `count` elements in the entry block."""
        name = "%" + self.name(hint)
        kind = element if count == 1 else f"[{count} x {element}]"
        self.entry.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def declare(self, name: str, text: str) -> None:
        """Make sure that the external function is declared once."""
        self.declares.setdefault(name, text)

    def call(
        self, function: str, operands: tuple[Value | str, ...], result: Value | str, hint: str = "t", flags: str = ""
    ) -> Value | str:
        """Call an external function or intrinsic; `result` gives the type (its text is ignored), `flags` those of fast mathematics.

        A string operand is written as it stands and must contain its type.
        """
        returned = result if isinstance(result, str) else result.type
        kinds = ", ".join(
            o.split(" ", 1)[0] if isinstance(o, str) and not o.startswith("<") else _kind(o) for o in operands
        )
        written = ", ".join(o if isinstance(o, str) else o.typed for o in operands)
        self.declare(function, f"declare {returned} @{function}({kinds})")
        text = f"call {flags + ' ' if flags else ''}{returned} @{function}({written})"
        if returned == "void":
            self.line(text)
            return ""
        if isinstance(result, str):
            return self.raw(text, hint)
        return self.op(text, result.dtype, result.lanes, hint)


def _kind(operand: Value | str) -> str:
    """The type in front of a written operand."""
    if isinstance(operand, Value):
        return operand.type
    return operand[: operand.index(">") + 1]


def mangle(type_text: str) -> str:
    """The suffix of an intrinsic for a type: `v8f32`, `f64`, `i32`."""
    lanes = ""
    if type_text.startswith("<"):
        count, type_text = type_text[1:-1].split(" x ")
        lanes = f"v{count}"
    names = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
    return lanes + names.get(type_text, type_text)
