"""The register file: one NumPy array per register, one element per lane.

A register keeps the dtype that was last written, as long as its size is right; readers look at it as the dtype they want. `sel`
is None when every lane that matters is active (then arrays are replaced), else the indices of the active lanes (then elements
are changed in place, which is safe because no two registers share an array).

Example:
    >>> file = RegisterFile(4)
    >>> write = file.writer(file.declare("%r1", 4), U32)
    >>> write(np.arange(4, dtype=np.uint32), None)
    >>> file.reader(Register("%r1"), I32)(None).tolist()
    [0, 1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tc_jupyter.simulator.arithmetic import BOOL, F32, F64, I32, U32, Array
from tc_jupyter.simulator.ptx import Immediate, Negated, Operand, Register, SimulationError, Symbol

Lanes = npt.NDArray[np.int64]
Reader = Callable[[Lanes | None], Array]
Writer = Callable[[Array, Lanes | None], None]

__all__ = ["I32", "U32", "Lanes", "Reader", "RegisterFile", "Writer"]


def constant(operand: Immediate, dtype: np.dtype[Any]) -> Any:
    """Return the literal as a scalar of `dtype`."""
    if dtype == BOOL:
        return np.bool_(operand.value != 0)
    if operand.kind == "int":
        if dtype.kind == "f":
            return dtype.type(operand.value)
        masked = operand.value & ((1 << (8 * dtype.itemsize)) - 1)
        return np.dtype(f"u{dtype.itemsize}").type(masked).view(dtype)
    if operand.kind == "f32":
        value = np.uint32(operand.value).view(F32)
        return value.view(dtype) if dtype.itemsize == 4 else value.astype(dtype)
    value = np.uint64(operand.value).view(F64)
    return value.view(dtype) if dtype.itemsize == 8 else value.astype(dtype)


class RegisterFile:
    """Registers of `lanes` lanes; `values[slot]` is None until the first write."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.values: list[Any] = []
        self.sizes: list[int] = []
        self.slots: dict[str, int] = {}
        self.resolve: Callable[[Symbol], int] = lambda symbol: self.fail(symbol)
        self.constants: dict[tuple[Any, np.dtype[Any]], Array] = {}

    @staticmethod
    def fail(symbol: Symbol) -> int:
        """Refuse a symbol before the machine says where variables are."""
        raise SimulationError(f"the symbol `{symbol.name}` is not known")

    def declare(self, name: str, size: int) -> int:
        """Add a register of `size` bytes and return its slot."""
        if name not in self.slots:
            self.slots[name] = len(self.values)
            self.values.append(None)
            self.sizes.append(size)
        return self.slots[name]

    def slot(self, operand: Operand) -> int:
        """Return the slot of a register operand."""
        if not isinstance(operand, Register) or operand.name not in self.slots:
            raise SimulationError(f"`{getattr(operand, 'name', operand)}` is not a register that the simulator knows")
        return self.slots[operand.name]

    def full(self, value: Any, dtype: np.dtype[Any]) -> Array:
        """Return a shared array with one value for every lane; never write to it."""
        key = (bytes(value.tobytes()), dtype)
        if key not in self.constants:
            self.constants[key] = np.full(self.lanes, value, dtype)
        return self.constants[key]

    def reader(self, operand: Operand, dtype: np.dtype[Any], packed: bool = False) -> Reader:
        """Return a function that reads an operand as `dtype`.

        With `packed` a 32-bit register gives two elements of 16 bits per lane. A register that is wider than `dtype` is truncated.
        """
        if isinstance(operand, Negated):
            positive = self.reader(operand.operand, dtype)
            return lambda sel: ~positive(sel)
        if isinstance(operand, Immediate | Symbol):
            if isinstance(operand, Symbol):
                operand = Immediate("int", self.resolve(operand))
            if packed:
                array = np.repeat(self.full(constant(operand, U32), U32), 1).view(dtype)
                return lambda sel: array if sel is None else array[: 2 * sel.size]
            array = self.full(constant(operand, dtype), dtype)
            return lambda sel: array if sel is None else array[: sel.size]
        slot = self.slot(operand)
        values = self.values
        size = self.sizes[slot]
        if size > dtype.itemsize and not packed:
            small, wide = np.dtype(f"u{dtype.itemsize}"), np.dtype(f"u{size}")

            def truncate(sel: Lanes | None) -> Array:
                array = values[slot]
                if sel is not None:
                    array = array[sel]
                return array.view(wide).astype(small).view(dtype)

            return truncate
        if size < dtype.itemsize:
            raise SimulationError(f"`{getattr(operand, 'name', '')}` is narrower than the type it is read as")

        def read(sel: Lanes | None) -> Array:
            array = values[slot]
            if sel is not None:
                array = array[sel]
            return array if array.dtype is dtype else array.view(dtype)

        return read

    def writer(self, slot: int, dtype: np.dtype[Any]) -> Writer:
        """Return a function that writes values of `dtype`, extended to the width of the register with the sign of `dtype`."""
        values, size, lanes = self.values, self.sizes[slot], self.lanes
        if dtype.itemsize < size:
            wide = np.dtype(f"{'i' if dtype.kind == 'i' else 'u'}{size}")
            inner = self.writer(slot, wide)
            return lambda value, sel: inner(value.astype(wide), sel)

        def write(value: Array, sel: Lanes | None) -> None:
            if sel is None:
                values[slot] = value
                return
            old = values[slot]
            if old is None:
                old = np.zeros(lanes, value.dtype)
                values[slot] = old
            elif old.dtype is not value.dtype:
                old = old.view(value.dtype)
            old[sel] = value

        return write

    def target(self, operand: Operand, dtype: np.dtype[Any]) -> Writer:
        """Like `writer`, for an operand; `_` takes any value and keeps nothing."""
        if isinstance(operand, Register) and operand.name == "_":
            return lambda value, sel: None
        return self.writer(self.slot(operand), dtype)
