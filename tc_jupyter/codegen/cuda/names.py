"""The user's names as C++ identifiers: legal, free of collisions, and the same whenever possible.

Worked example: tensors `int`, `2fc` and the axis `i.outer` become `int_`, `t2fc` and `i_outer`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq final override import
module typeof
"""

_CUDA = """
threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 size_t ptrdiff_t clock_t clock clock64 printf malloc free
memcpy memset assert char1 char2 char3 char4 uchar1 uchar2 uchar3 uchar4 short1 short2 short3 short4 ushort1 ushort2
ushort3 ushort4 int1 int2 int3 int4 uint1 uint2 uint4 long1 long2 long3 long4 ulong1 ulong2 ulong3 ulong4 longlong1
longlong2 longlong3 longlong4 ulonglong1 ulonglong2 ulonglong3 ulonglong4 float1 float2 float3 float4 double1 double2
double3 double4 cudaError_t cudaStream_t cudaEvent_t atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc
atomicDec atomicCAS atomicAnd atomicOr atomicXor NULL EOF NAN INFINITY HUGE_VAL va_arg va_start va_end va_copy va_list
offsetof errno linux unix i386 signbit std cuda nv texture surface cudaTextureObject_t cudaSurfaceObject_t ushort uint
ulong main
"""

_MATH = """
abs labs llabs fabs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0
cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fdim fdivide floor fma fmax fmin fmod frexp hypot
ilogb isfinite isinf isnan isnormal j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround max
min modf nan nearbyint nextafter norm norm3d norm4d normcdf normcdfinv pow powi rcbrt remainder remquo rhypot rint
rnorm rnorm3d rnorm4d round rsqrt scalbln scalbn sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc umin umax
llmin llmax ullmin ullmax y0 y1 yn saturate
"""

RESERVED = frozenset((_KEYWORDS + _CUDA + _MATH).split()) | frozenset(f"{name}f" for name in _MATH.split())
"""Words that must not become a name of ours: keywords, CUDA's built-in names, the mathematical functions, common
macros.
"""


@dataclass(slots=True)
class Names:
    """Hands out C++ identifiers; equal requests under one key get the same answer."""

    taken: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)

    def of(self, key: str, wish: str | None = None) -> str:
        """The identifier of `key`, made from `wish` (or from `key`) when asked for the first time."""
        if key not in self.known:
            self.known[key] = self.fresh(key if wish is None else wish)
        return self.known[key]

    def fresh(self, wish: str) -> str:
        """An unused identifier close to `wish`."""
        name = identifier(wish)
        unique, number = name, 2
        while unique in self.taken:
            unique, number = f"{name}_{number}", number + 1
        self.taken.add(unique)
        return unique


def identifier(wish: str) -> str:
    """A legal identifier that is neither reserved nor in the name space of helpers (`tc_...`) or of the
    implementation (`__...`).
    """
    plain = re.sub(r"[^0-9A-Za-z_]", lambda match: "_" if match[0] in ". -" else f"u{ord(match[0]):x}", wish) or "t"
    plain = re.sub(r"__+", "_", plain)
    if plain[0].isdigit():
        plain = "t" + plain
    if plain.startswith("tc_") or re.match(
        r"_[A-Z0-9_]|_$|(?:FLT|DBL|LDBL|INT|UINT|CHAR|SHRT|LONG|LLONG|M)_[A-Z0-9_]+$", plain
    ):
        plain = "n" + plain
    return plain + "_" if plain in RESERVED else plain


def comment_text(text: str) -> str:
    """`text` on one line of a `//` comment: no control characters, no backslash that would continue the line."""
    plain = "".join(char if char.isprintable() else " " for char in text).rstrip()
    return plain + "." if plain.endswith("\\") else plain
