"""The processors that a library has code for, and how it finds out which of its code this one can run: `cpuid`, once.

Worked example: `level_text(processors(("x86-64-v3", "x86-64-v4")))` has a function `tc_level` that returns 1 where AVX-512 is
there, 0 where AVX2 is, else -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tc_jupyter.schedule import Target

_C1, _B7, _C7, _D7, _A71, _EXT = (1, 0, 2), (7, 0, 1), (7, 0, 2), (7, 0, 3), (7, 1, 0), (0x80000001, 0, 2)
_BITS: dict[str, tuple[tuple[int, int, int], int]] = {
    "sse3": (_C1, 0), "pclmul": (_C1, 1), "ssse3": (_C1, 9), "fma": (_C1, 12), "cx16": (_C1, 13), "sse4.1": (_C1, 19),
    "sse4.2": (_C1, 20), "movbe": (_C1, 22), "popcnt": (_C1, 23), "aes": (_C1, 25), "avx": (_C1, 28), "f16c": (_C1, 29),
    "sahf": (_EXT, 0), "lzcnt": (_EXT, 5), "bmi": (_B7, 3), "avx2": (_B7, 5), "bmi2": (_B7, 8), "avx512f": (_B7, 16),
    "avx512dq": (_B7, 17), "adx": (_B7, 19), "avx512ifma": (_B7, 21), "avx512cd": (_B7, 28), "sha": (_B7, 29),
    "avx512bw": (_B7, 30), "avx512vl": (_B7, 31), "avx512vbmi": (_C7, 1), "avx512vbmi2": (_C7, 6), "gfni": (_C7, 8),
    "vaes": (_C7, 9), "vpclmulqdq": (_C7, 10), "avx512vnni": (_C7, 11), "avx512bitalg": (_C7, 12),
    "avx512vpopcntdq": (_C7, 14), "avx512fp16": (_D7, 23), "avxvnni": (_A71, 4), "avx512bf16": (_A71, 5),
}  # fmt: skip
"""Leaf, part of it, register (`eax` is 0), and bit of a feature."""
KNOWN = tuple(_BITS)
"""The features that a library can look for; code is made with no others."""
_YMM, _ZMM = 0x6, 0xE6
"""Registers that the system has to save: for AVX, and for AVX-512."""
_OF_YMM = ("fma", "f16c", "vaes", "vpclmulqdq")


@dataclass(frozen=True, slots=True)
class Processor:
    """A kind of processor that a library has code for.

    Attributes:
        name: in C, `v3` or `native`.
        shown: as users write it, `x86-64-v3` or `native`.
        checked: the features that the library looks for before it runs the code.
    """

    name: str
    shown: str
    target: Target
    checked: tuple[str, ...]


_X86 = """#include <cpuid.h>

/* leaf, part, register, bit, registers that the system has to save */
static const unsigned tc_bits[][5] = {
ROWS
};

static int tc_has(unsigned feature)
{
    unsigned found[4] = {0}, saved = 0, high;
    if (!__get_cpuid_count(1, 0, &found[0], &found[1], &found[2], &found[3])) return 0;
    if (found[2] >> 27 & 1) __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(tc_bits[feature][0], tc_bits[feature][1], &found[0], &found[1], &found[2], &found[3])) return 0;
    return (found[tc_bits[feature][2]] >> tc_bits[feature][3] & 1) && (saved & tc_bits[feature][4]) == tc_bits[feature][4];
}

static uint64_t tc_features(void)
{
#ifdef TC_FEATURES
    return TC_FEATURES;
#else
    uint64_t found = 0;
    for (unsigned k = 0; k < sizeof tc_bits / sizeof *tc_bits; k++) found |= (uint64_t)tc_has(k) << k;
    return found;
#endif
}
"""

_LEVEL = """static const char tc_needs[] = NEEDS;

/* The place of the code for this processor in tables, -1 where there is none. */
static int tc_level(void)
{
    static const uint64_t needed[] = {MASKS};
    static int known = -2;
    int level = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (level == -2) {
        uint64_t found = FOUND;
        for (level = COUNT - 1; level >= 0 && (needed[level] & ~found); level--) {}
        __atomic_store_n(&known, level, __ATOMIC_RELAXED);
    }
    return level;
}
"""


def level_text(kinds: Sequence[Processor]) -> str:
    """The C text of `tc_level`; its numbers are the places of the processors."""
    is_x86 = kinds[0].target.arch.startswith("x86_64")
    masks = [sum(1 << KNOWN.index(each) for each in kind.checked) for kind in kinds]
    text = _LEVEL.replace("MASKS", ", ".join(f"UINT64_C({mask})" for mask in masks)).replace("COUNT", str(len(kinds)))
    needs = kinds[0].shown if kinds[0].shown != "native" else ", ".join(kinds[0].checked)
    text = text.replace("NEEDS", f'"{needs}"').replace("FOUND", "tc_features()" if is_x86 else "0")
    return (_X86.replace("ROWS", "\n".join(map(_row, KNOWN))) + "\n" if is_x86 else "") + text


def _row(name: str) -> str:
    (leaf, part, register), bit = _BITS[name]
    saved = _ZMM if name.startswith("avx512") else _YMM if name.startswith("avx") or name in _OF_YMM else 0
    return f"    {{{leaf:#x}, {part}, {register}, {bit}, {saved:#x}}},  /* {name} */"
