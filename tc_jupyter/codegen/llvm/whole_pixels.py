"""Residues that are written out around vectors of varying lengths -> the same where all vectors are equally long.

Vectors of the residues of a row are mixed when they are written (`stores`), if all have the same lanes. A tile that is full has a
version for that, and so has one at the end of a row with as many elements of each residue. Others scatter their lanes.

Worked example: of rows of `W` elements, two by two, 16 vectors long

    for r in 0:min(W - 32*o, 2)  # unroll                     if (W - 32*o + 1) // 2 >= 16 && (W - 32*o) // 2 >= 16 && ...
      for q in 0:min((W - r - 32*o + 1) // 2, 16)               for r in 0:2
        Y[32*o + 2*q + r] = ...                        ->         for q in 0:16: Y[32*o + 2*q + r] = ...
                                                              else ... the same for q in 0:min((W - 32*o) // 2, 16), else as before

Measured with AVX-512, one thread: the derivative of maxima of 2 x 2 in 8 x 64 x 112 x 112 floats 10.2 ms scattered, 2.2 mixed.
"""

from __future__ import annotations

from dataclasses import replace

from tc_jupyter.loops import Block, For, If, Stmt
from tc_jupyter.loops.rewrite import substitute, with_blocks, with_body
from tc_jupyter.program import Binary, DType, Expr, int64
from tc_jupyter.program.integers import all_of
from tc_jupyter.schedule import tuning

from .full_tiles import SHORT
from .limits import upper_limit
from .polynomial import constant_value, mentions


def whole_pixels(block: Block) -> Block:
    """Apply the rule to every such pair of loops inside."""
    return with_body(block, map(_whole_pixels, block.body))


def _whole_pixels(stmt: Stmt) -> Stmt:
    found = _vectors(stmt)
    if found is None:
        return with_blocks(stmt, whole_pixels)
    residues, vectors, count, lanes = found
    every = () if constant_value(residues.extent) == count else (_same(residues.extent, int64(count)),)
    lengths = [substitute(vectors.extent, {residues.var: int64(number)}) for number in range(count)]

    def of_length(extent: Expr) -> Block:
        inner = replace(vectors, extent=extent)
        return Block((replace(residues, extent=int64(count), body=Block((inner,))),))

    full = all_of([*every, *(_same(length, int64(lanes)) for length in lengths)])
    even = all_of([*every, *(_same(length, lengths[-1]) for length in lengths[:-1])])
    some = If(Binary(">", lengths[-1], int64(0), DType.BOOL), of_length(lengths[-1]))
    rest = If(even, Block((some,), SHORT), Block((stmt,), SHORT))
    return If(full, of_length(int64(lanes)), Block((rest,), SHORT))


def _vectors(stmt: Stmt) -> tuple[For, For, int, int] | None:
    """A loop that is written out, the vectors that are all of it, and how many of both there are at most, if these differ."""
    if not isinstance(stmt, For) or stmt.kind != "unroll" or len(stmt.body.body) != 1:
        return None
    inner, count = stmt.body.body[0], upper_limit(stmt.extent) or constant_value(stmt.extent)
    if not isinstance(inner, For) or inner.kind != "vectorize" or constant_value(stmt.min) != 0:
        return None
    lanes = upper_limit(inner.extent)
    if count is None or lanes is None or not 2 <= count <= tuning.VERSIONS or not mentions(inner.extent, stmt.var):
        return None
    return stmt, inner, count, lanes


def _same(left: Expr, right: Expr) -> Expr:
    return Binary("==", left, right, DType.BOOL)
