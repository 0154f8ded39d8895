"""What a def looks like in C: its function, the struct of each array, and the comment that says what a call has to fulfil.

Worked example: `def mv(float(R, C) A, float(C) B) -> (o) { ... }` is

    int mv(const tc_float32_2d *A, const tc_float32_1d *B, const tc_float32_1d *o, const tc_options *options);
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tc_jupyter.codegen.plain import Names
from tc_jupyter.codegen.plain.c_helpers import C_TYPES
from tc_jupyter.compiler.definition import Definition
from tc_jupyter.program import DType

ELEMENTS = {
    **C_TYPES,
    DType.FLOAT16: "tc_float16",
    DType.BFLOAT16: "tc_bfloat16",
    DType.COMPLEX64: "tc_complex64",
    DType.COMPLEX128: "tc_complex128",
}
"""The type of an element in the header."""


_TAKEN = "options call c code over level run copies empty done memory threads total slots small"
"""Names that are no parameters: those of the functions below."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or a result of the C function.

    Attributes:
        name: in the def; `c` in C.
        rank: of the array; 0 for a number, which is passed by value if it is neither a result nor complex.
        is_result: whether the function writes it.
    """

    name: str
    c: str
    dtype: DType
    rank: int
    is_result: bool

    @property
    def struct(self) -> str:
        """The type of the array."""
        return f"tc_{self.dtype.value}_{self.rank}d"

    @property
    def by_value(self) -> bool:
        """Whether the number itself is passed."""
        return not self.rank and not self.is_result and not self.dtype.is_complex

    @property
    def pairs(self) -> bool:
        """Whether kernels know it as pairs of floats."""
        return self.dtype.is_complex

    @property
    def stored_rank(self) -> int:
        """The rank that kernels know."""
        return self.rank + self.pairs

    @property
    def declared(self) -> str:
        """As in the prototype."""
        if self.rank:
            return f"const {self.struct} *{self.c}"
        element = ELEMENTS[self.dtype]
        if self.by_value:
            return f"{element} {self.c}"
        return f"{element} *{self.c}" if self.is_result else f"const {element} *{self.c}"


@dataclass(frozen=True, slots=True)
class Signature:
    """A def in C.

    Attributes:
        name: of the C function.
        written: that of the def, with the ranks where there are several of this name.
        inputs, results: in the order of the def.
    """

    name: str
    written: str
    inputs: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All, in the order of the C function."""
        return (*self.inputs, *self.results)

    def call(self, suffix: str = "") -> str:
        """The head of the function."""
        declared = [*(each.declared for each in self.parameters), "const tc_options *options"]
        return f"int {self.name}{suffix}({', '.join(declared)})"

    def shapes(self) -> str:
        """The head of what writes the sizes of the results."""
        results = [each.declared.removeprefix("const ") for each in self.results if each.rank]
        declared = [*(each.declared for each in self.inputs), *results]
        return f"int {self.name}_shapes({', '.join(declared) or 'void'})"

    def error(self) -> str:
        """The head of what gives the text of a code."""
        return f"const char *{self.name}_error(int code)"


def signature(definition: Definition, taken: Iterable[str], written: str | None = None) -> Signature:
    """The C function of a def, which may have a name that is `written` otherwise; `taken` are the names of others."""
    program = definition.program
    own = Names(taken={*_TAKEN.split()})
    inputs = tuple(Parameter(p.name, own.of(p.name), p.dtype, p.rank, False) for p in definition.written)
    tensors = map(program.tensor, program.results)
    results = tuple(Parameter(t.name, own.of(t.name), t.element, t.written_rank, True) for t in tensors)
    written = written or program.name
    return Signature(_function_name(written, {*taken}), written, inputs, results)


SUFFIXES = ("", "_onto", "_shapes", "_error", "_cuda", "_cuda_onto")
"""What stands behind the name of a def in the names of its functions."""


def _function_name(name: str, taken: set[str]) -> str:
    """The name of the C function: names of the library itself begin with `tc_`."""
    found = Names().of(name)
    found = f"f_{found}" if found.startswith("tc_") or found == "philox" else found
    while any(f"{found}{suffix}" in taken for suffix in SUFFIXES):
        found += "_"
    return found


def structs(signatures: Iterable[Signature]) -> list[str]:
    """The structs of arrays that functions take, each guarded, since other headers may have it."""
    kinds = {(each.dtype, each.rank): each for found in signatures for each in found.parameters if each.rank}
    lines: list[str] = []
    for (dtype, rank), each in sorted(kinds.items(), key=lambda pair: (pair[0][0].value, pair[0][1])):
        guard = each.struct.upper()
        lines += [
            f"#ifndef {guard}",
            f"#define {guard}",
            f"typedef struct {each.struct} {{",
            f"    {ELEMENTS[dtype]} *data;",
        ]
        lines += [f"    int64_t sizes[{rank}];", "    const int64_t *strides;", f"}} {each.struct};", "#endif"]
    return lines
