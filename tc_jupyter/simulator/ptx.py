"""PTX text -> instructions, as NVRTC and nvcc write it.

The parser resolves scopes (inline assembly declares registers in braces), keeps the line of the user's source from `.loc`, and
decides nothing about meaning: an opcode it has never seen is an `Instruction` like any other.

Example:
    >>> module = parse('''.version 8.0
    ... .target sm_80
    ... .address_size 64
    ... .visible .entry k(.param .u64 k_param_0) { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }''')
    >>> [instruction.opcode for instruction in module.kernels["k"].body]
    ['mov.u32', 'ret']

Source: PTX ISA, sections "Syntax", "State spaces, types and variables", "Instruction operands", "Pragma Strings".
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import lru_cache

SIZES = {
    "pred": 1,
    "b8": 1,
    "u8": 1,
    "s8": 1,
    "b16": 2,
    "u16": 2,
    "s16": 2,
    "f16": 2,
    "bf16": 2,
    "b32": 4,
    "u32": 4,
    "s32": 4,
    "f32": 4,
    "f16x2": 4,
    "bf16x2": 4,
    "tf32": 4,
    "b64": 8,
    "u64": 8,
    "s64": 8,
    "f64": 8,
    "b128": 16,
}
"""Bytes of each fundamental type."""


class SimulationError(Exception):
    """What the simulator cannot run: unreadable PTX, an unknown opcode, a launch that cannot be, too much work.

    `line` is the line of the user's source when it is known (counted as the compiler counts it), else None.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"{message} (line {line})")
        self.line = line


@dataclass(frozen=True, slots=True)
class Register:
    """A register of the current function, or a special one such as `%tid.x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: `kind` is "int" (value is the integer), "f32" or "f64" (value is the bit pattern)."""

    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, a label, or the name of a function, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`, offset in bytes; `base` is None for an absolute address."""

    base: Register | Symbol | None
    offset: int


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)`: the arguments or results of a call."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated | Group


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p` before an instruction."""

    register: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `parts` are the pieces of `opcode` between the dots.

    `line` is the line of the user's source or None; `text_line` the line of the CUDA text where the user's is not known.
    `used` has a bit for each byte of a load that anything uses, -1 for all.
    """

    opcode: str
    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int | None
    text_line: int | None = None
    used: int = -1


def element_type(instruction: Instruction) -> str:
    """The last type suffix."""
    for part in reversed(instruction.parts):
        if part in SIZES:
            return part
    raise SimulationError(f"`{instruction.opcode}` has no type", instruction.line)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a state space: `size` in bytes, 0 for an unsized `extern` array; `data` when it has an initialiser."""

    name: str
    space: str
    size: int
    align: int
    data: bytes | None
    extern: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: `type` is the PTX type, `size` its bytes (of the whole array for a structure passed by value)."""

    name: str
    type: str
    size: int
    align: int


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """An `.entry` or `.func`: registers by name with their type, labels as positions in `body`."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    registers: dict[str, str]
    variables: tuple[Variable, ...]
    labels: dict[str, int]
    tables: dict[str, tuple[str, ...]]
    body: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class PtxModule:
    """A parsed text: entry points, device functions and variables of the module."""

    kernels: dict[str, PtxKernel]
    functions: dict[str, PtxKernel]
    declared: frozenset[str]
    variables: tuple[Variable, ...]
    target: str
    text: str


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"\n]*)"[^\n]*')
_STATEMENT = re.compile(
    r"""\s*(?:
      (?P<loc>\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+\d+(?P<rest>[^\n;]*))
    | (?P<label>[A-Za-z_$%][\w$]*)\s*:
    | (?P<open>\{)
    | (?P<close>\})
    | (?P<text>(?:[^;{}]|\{[^{};]*\})+);
    )""",
    re.X,
)
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_USED = re.compile(r'"used_bytes_mask\s+(0[xX][0-9a-fA-F]+|\d+)"')
_GUARD = re.compile(r"@(!?)([\w$%]+)\s+")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_ADDRESS = re.compile(r"([\w$%.]+)?\s*(?:([+-])?\s*(-?\s*(?:0[xX][0-9a-fA-F]+|\d+)))?$")
_VARIABLE = re.compile(
    r"(?P<prefix>(?:\.\w+\s+)*?)\.(?P<space>shared|local|global|const|param)\b(?P<attributes>(?:\s*\.(?:align\s+\d+|ptr|v\d|attribute\([^)]*\)))*)"
    r"\s*\.(?P<type>\w+)\s+(?P<name>[\w$%]+)\s*(?P<dims>(?:\[\s*\d*\s*\])*)\s*(?:=\s*(?P<init>.*))?$",
    re.S,
)
_HEADER = re.compile(r"((?:\.(?:visible|weak|extern|common|static)\s+)*)\.(entry|func)\b", re.S)


def _split(text: str) -> list[str]:
    """Split at commas that are outside brackets, braces and parentheses."""
    if "{" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")] if text else []
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _integer(text: str) -> int:
    text = text.replace(" ", "").rstrip("U")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "xXbB":
        return sign * int(digits, 0)
    return sign * (int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits))


def _number(text: str) -> Immediate | None:
    if text[:2] in ("0f", "0F") and len(text) == 10:
        return Immediate("f32", int(text[2:], 16))
    if text[:2] in ("0d", "0D") and len(text) == 18:
        return Immediate("f64", int(text[2:], 16))
    if _INTEGER.match(text):
        return Immediate("int", _integer(text))
    if re.match(r"-?\d*\.\d+(?:[eE][+-]?\d+)?$|-?\d+[eE][+-]?\d+$", text):
        return Immediate("f64", struct.unpack("<Q", struct.pack("<d", float(text)))[0])
    return None


_CLOSING = {"{": "}", "(": ")", "[": "]"}


@dataclass(slots=True)
class _Scope:
    """Names that are visible; inner braces may declare a name again."""

    names: dict[str, str] = field(default_factory=dict[str, str])


class _FunctionParser:
    """Parses one body. Inner names get a suffix, so that the result has one flat table of registers."""

    def __init__(self, files: dict[int, str]) -> None:
        # Generated text is a `.cu` file that names the user's cell by `#line`.
        self.cells = {number for number, path in files.items() if not path.endswith((".cu", ".cuh", ".h", ".hpp"))}
        self.text_line: int | None = None
        self.registers: dict[str, str] = {}
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.variables: list[Variable] = []
        self.body: list[Instruction] = []
        self.scopes = [_Scope()]
        self.line: int | None = None
        self.main_file: int | None = None
        self.cache: dict[str, Operand] = {}
        self.pending_label: str | None = None
        self.renamed = 0
        self.used = -1

    def declare(self, name: str, type: str) -> None:
        unique = name
        if name in self.registers and len(self.scopes) > 1:
            self.renamed += 1
            unique = f"{name}#{self.renamed}"
        self.registers[unique] = type
        self.scopes[-1].names[name] = unique

    def lookup(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return name

    def operand(self, text: str) -> Operand:
        known = self.cache.get(text)
        if known is None:
            known = self.read_operand(text)
            self.cache[text] = known
        return known

    def read_operand(self, text: str) -> Operand:
        first = text[:1]
        if first in _CLOSING and not text.endswith(_CLOSING[first]):
            raise SimulationError(f"cannot read the operand `{text}`", self.line)
        if first == "{":
            return Vector(tuple(self.operand(item) for item in _split(text[1:-1])))
        if first == "(":
            return Group(tuple(self.operand(item) for item in _split(text[1:-1])))
        if first == "[":
            return self.address(text[1:-1].strip())
        if first == "!":
            return Negated(Register(self.lookup(text[1:].strip())))
        if "|" in text:
            one, two = text.split("|")
            return Pair(self.operand(one.strip()), self.operand(two.strip()))
        number = _number(text)
        if number is not None:
            return number
        name = self.lookup(text)
        if name in self.registers or text.startswith("%") or text in ("_", "WARP_SZ"):
            return Immediate("int", 32) if text == "WARP_SZ" else Register(name)
        found = re.match(r"([\w$%.]+)\s*\+\s*(\d+)$", text)
        if found:
            return Symbol(found[1], int(found[2]))
        if text.startswith("generic("):
            return Symbol(text[8:-1].strip())
        return Symbol(text)

    def address(self, text: str) -> Operand:
        found = _ADDRESS.match(text)
        if not found:
            raise SimulationError(f"cannot read the address `[{text}]`", self.line)
        base, sign, offset = found.groups()
        distance = _integer(offset) * (-1 if sign == "-" else 1) if offset else 0
        if base is None:
            return Address(None, distance)
        if _INTEGER.match(base):
            return Address(None, _integer(base) + distance)
        operand = self.operand(base)
        assert isinstance(operand, Register | Symbol)
        return Address(operand, distance)

    def location(self, found: re.Match[str]) -> None:
        """Keep the line of the user's file, through functions that were inlined into it."""
        file, line, rest = int(found["file"]), int(found["line"]), found["rest"]
        if self.main_file is None:
            self.main_file = file
        inlined = _INLINED.search(rest)
        if not self.is_users(file) and inlined and self.is_users(int(inlined[1])):
            file, line = int(inlined[1]), int(inlined[2])
        if line <= 0:
            return
        if self.is_users(file):
            self.line, self.text_line = line, None
        else:
            self.line, self.text_line = None, line

    def is_users(self, file: int) -> bool:
        """Tell whether a file is the cell; without a cell it is the file in which the function begins."""
        return file in self.cells if self.cells else file == self.main_file

    def statement(self, text: str) -> None:
        if text.startswith("."):
            self.directive(text)
            return
        guard = None
        if text.startswith("@"):
            found = _GUARD.match(text)
            if not found:
                raise SimulationError(f"cannot read the guard in `{text}`", self.line)
            guard = Guard(self.lookup(found[2]), bool(found[1]))
            text = text[found.end() :]
        opcode, _, rest = text.partition(" ") if "\t" not in text else _first_word(text)
        operands = tuple(self.operand(item) for item in _split(rest.strip()))
        parts = tuple(opcode.split("."))
        self.body.append(Instruction(opcode, parts, operands, guard, self.line, self.text_line, self.used))
        self.used = -1

    def directive(self, text: str) -> None:
        if text.startswith(".reg"):
            words = text[4:].split(None, 1)
            type = words[0].lstrip(".")
            for item in words[1].split(","):
                found = re.match(r"\s*([\w$%]+)\s*(?:<\s*(\d+)\s*>)?", item)
                if not found or type not in SIZES:
                    raise SimulationError(f"cannot read the declaration `{text}`", self.line)
                names = [found[1]] if found[2] is None else [f"{found[1]}{i}" for i in range(int(found[2]))]
                for name in names:
                    self.declare(name, type)
            self.cache.clear()
        elif text.startswith(".branchtargets"):
            if self.pending_label is None:
                raise SimulationError("a `.branchtargets` list without a label", self.line)
            self.labels.pop(self.pending_label, None)
            self.tables[self.pending_label] = tuple(item.strip() for item in text[14:].split(","))
        elif text.startswith((".pragma", ".callprototype", ".calltargets", ".alias")):
            found = _USED.search(text)
            if found:
                self.used = _integer(found[1])
        else:
            self.variables.append(_variable(text, self.line))

    def run(self, text: str, start: int) -> int:
        """Parse from just after the opening brace; return the position after the closing one."""
        position = start
        while True:
            found = _STATEMENT.match(text, position)
            if not found:
                raise SimulationError(f"cannot read PTX at `{text[position : position + 60].strip()}`", self.line)
            position = found.end()
            if found["text"] is not None:
                self.statement(found["text"].strip())
                self.pending_label = None
            elif found["loc"] is not None:
                self.location(found)
            elif found["label"] is not None:
                self.pending_label = found["label"]
                self.labels[found["label"]] = len(self.body)
            elif found["open"] is not None:
                self.scopes.append(_Scope())
            else:
                self.scopes.pop()
                self.cache.clear()
                if not self.scopes:
                    return position


def _first_word(text: str) -> tuple[str, str, str]:
    words = text.split(None, 1)
    return words[0], " ", words[1] if len(words) > 1 else ""


def _pack(type: str, text: str) -> bytes:
    size = SIZES[type]
    value = _number(text.strip())
    if value is None:
        raise SimulationError(f"the initialiser `{text.strip()}` is not a number")
    return (value.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _variable(text: str, line: int | None = None) -> Variable:
    found = _VARIABLE.match(text)
    if not found or found["type"] not in SIZES:
        raise SimulationError(f"cannot read the declaration `{text[:80]}`", line)
    size = SIZES[found["type"]]
    align = re.search(r"\.align\s+(\d+)", found["attributes"])
    vector = re.search(r"\.v(\d)", found["attributes"])
    total = size * (int(vector[1]) if vector else 1)
    for extent in re.findall(r"\[\s*(\d*)\s*\]", found["dims"]):
        total *= int(extent) if extent else 0
    data = None
    if found["init"] is not None:
        values = [item for item in re.split(r"[{},\s]+", found["init"]) if item]
        data = b"".join(_pack(found["type"], item) for item in values).ljust(total, b"\0")
    extern = ".extern" in found["prefix"]
    return Variable(found["name"], found["space"], total, int(align[1]) if align else size, data, extern)


def _parameters(text: str) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    for item in _split(text):
        found = _VARIABLE.match(re.sub(r"\.ptr\b(?:\s*\.\w+(?=\s*\.))*(?:\s*\.align\s+\d+)?", "", item))
        if not found:
            found = re.match(r"\.reg\s+\.(?P<type>\w+)\s+(?P<name>[\w$%]+)", item)
            if not found:
                raise SimulationError(f"cannot read the parameter `{item}`")
            parameters.append(Parameter(found["name"], found["type"], SIZES[found["type"]], 1))
            continue
        variable = _variable(found.string)
        parameters.append(Parameter(variable.name, found["type"], variable.size, variable.align))
    return tuple(parameters)


def _matching(text: str, start: int) -> int:
    """Return the position after the parenthesis or brace that closes the one at `start`."""
    pairs = {"(": ")", "{": "}"}
    opening, closing, depth = text[start], pairs[text[start]], 0
    for position in range(start, len(text)):
        if text[position] == opening:
            depth += 1
        elif text[position] == closing:
            depth -= 1
            if depth == 0:
                return position + 1
    raise SimulationError("the PTX text ends inside a bracket")


def _function(text: str, position: int, files: dict[int, str]) -> tuple[PtxKernel, bool, int]:
    """Parse `[(results)] name (parameters) attributes {body}`; the second result says whether there is a body."""
    results: tuple[Parameter, ...] = ()
    found = re.compile(r"\s*\(").match(text, position)
    if found:
        end = _matching(text, found.end() - 1)
        results, position = _parameters(text[found.end() : end - 1]), end
    name = re.compile(r"\s*([\w$%]+)\s*").match(text, position)
    if not name:
        raise SimulationError("cannot read the name of a function")
    position = name.end()
    parameters: tuple[Parameter, ...] = ()
    if text[position : position + 1] == "(":
        end = _matching(text, position)
        parameters, position = _parameters(text[position + 1 : end - 1]), end
    rest = re.compile(r"[^;{]*([;{])").match(text, position)
    if not rest:
        raise SimulationError(f"the function `{name[1]}` has no end")
    parser = _FunctionParser(files)
    position = rest.end()
    if rest[1] == "{":
        for parameter in (*results, *parameters):
            if parameter.name.startswith("%"):
                parser.declare(parameter.name, parameter.type)
        position = parser.run(text, position)
    kernel = PtxKernel(
        name[1],
        parameters,
        results,
        parser.registers,
        tuple(parser.variables),
        parser.labels,
        parser.tables,
        tuple(parser.body),
    )
    return kernel, rest[1] == "{", position


@lru_cache(maxsize=32)
def parse(ptx_text: str) -> PtxModule:
    """Parse a PTX text.

    Raises:
        SimulationError: the text is not PTX as NVRTC writes it.
    """
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), ptx_text).rstrip("\0 \n\t")
    files = {int(number): path for number, path in _FILE.findall(text)}
    kernels: dict[str, PtxKernel] = {}
    functions: dict[str, PtxKernel] = {}
    declared: set[str] = set()
    variables: list[Variable] = []
    target = ""
    skip = re.compile(
        r'\s*(?:\.version\s+[\d.]+|\.address_size\s+\d+|\.file\s+\d+\s+"[^"\n]*"[^\n]*|\.pragma[^;]*;|\.alias[^;]*;|$)'
    )
    position = 0
    while position < len(text):
        found = skip.match(text, position)
        if found and found.end() > position:
            position = found.end()
            continue
        position = re.compile(r"\s*").match(text, position).end()  # pyright: ignore[reportOptionalMemberAccess]
        if text.startswith(".target", position):
            found = re.compile(r"\.target\s+([\w, ]+)").match(text, position)
            assert found is not None
            target, position = found[1].strip(), found.end()
        elif text.startswith(".section", position):
            position = _matching(text, text.index("{", position))
        elif (found := _HEADER.match(text, position)) is not None:
            kernel, has_body, position = _function(text, found.end(), files)
            if not has_body:
                declared.add(kernel.name)
            elif found[2] == "entry":
                kernels[kernel.name] = kernel
            else:
                functions[kernel.name] = kernel
        else:
            found = re.compile(r"\.[^;]*;").match(text, position)
            if not found:
                raise SimulationError(f"cannot read PTX at `{text[position : position + 60].strip()}`")
            variables.append(_variable(found[0][:-1].strip()))
            position = found.end()
    if not kernels and not functions:
        raise SimulationError("the text contains no PTX function")
    return PtxModule(kernels, functions, frozenset(declared), tuple(variables), target, ptx_text)
