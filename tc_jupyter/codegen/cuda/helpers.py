"""Device functions that give C++ the meaning of the language. A kernel's text contains those that it uses, and no
header.

Worked example: `-7 / 2` is `tc_floor_div(-7, 2)`, which is -4, and `tc_floor_div(x, 0)` is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_INLINE = "static __device__ __forceinline__"

HELPERS: dict[str, str] = {
    "tc_vector": """
// N elements that are loaded and stored at once.
template <typename T, int N> struct __align__(sizeof(T) * N) tc_vector { T at[N]; };
""",
    "tc_load": """
template <int N, typename T> INLINE tc_vector<T, N> tc_load(const T* address) {
    return *reinterpret_cast<const tc_vector<T, N>*>(address);
}
""",
    "tc_store": """
template <int N, typename T> INLINE void tc_store(T* address, const tc_vector<T, N>& value) {
    *reinterpret_cast<tc_vector<T, N>*>(address) = value;
}
""",
    "tc_half_to_float": """
INLINE float tc_half_to_float(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
""",
    "tc_float_to_half": """
INLINE unsigned short tc_float_to_half(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
""",
    "tc_double_to_half": """
INLINE unsigned short tc_double_to_half(double value) {
    unsigned short bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
    return bits;
}
""",
    "tc_bfloat16_to_float": """
INLINE float tc_bfloat16_to_float(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }
""",
    "tc_float_to_bfloat16": """
INLINE unsigned short tc_float_to_bfloat16(float value) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    unsigned int bits = __float_as_uint(value);
    if (value != value) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
#endif
}
""",
    "tc_double_to_bfloat16": """
// One rounding, not two: the step to float rounds to odd, so that the second step sees what was lost.
INLINE unsigned short tc_double_to_bfloat16(double value) {
    unsigned int bits = __float_as_uint(__double2float_rz(value));
    if ((double)__uint_as_float(bits) != value && value == value) bits |= 1u;
    return tc_float_to_bfloat16(__uint_as_float(bits));
}
""",
    "tc_add": """
// Signed arithmetic that wraps; C++ leaves overflow undefined.
INLINE int tc_add(int a, int b) { return (int)((unsigned int)a + (unsigned int)b); }
INLINE long long tc_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
""",
    "tc_sub": """
INLINE int tc_sub(int a, int b) { return (int)((unsigned int)a - (unsigned int)b); }
INLINE long long tc_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
""",
    "tc_mul": """
INLINE int tc_mul(int a, int b) { return (int)((unsigned int)a * (unsigned int)b); }
INLINE long long tc_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
""",
    "tc_floor_div": """
// Division that rounds down; by zero it gives 0.
template <typename T> INLINE T tc_floor_div(T a, T b) {
    if (b == T(0)) return T(0);
    if (T(-1) < T(0) && b == T(-1)) return tc_negative(a);
    T quotient = a / b;
    return a % b != T(0) && (a < T(0)) != (b < T(0)) ? quotient - T(1) : quotient;
}
""",
    "tc_floor_mod": """
// Remainder with the sign of the divisor; by zero it gives 0. Most positions in an array are their own remainders.
template <typename T> INLINE T tc_floor_mod(T a, T b) {
    if (a >= T(0) && a < b) return a;
    if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
    T remainder = a % b;
    return remainder != T(0) && (remainder < T(0)) != (b < T(0)) ? remainder + b : remainder;
}
INLINE float tc_floor_mod(float a, float b) { return a - b * floorf(a / b); }
INLINE double tc_floor_mod(double a, double b) { return a - b * floor(a / b); }
""",
    "tc_negative": """
INLINE int tc_negative(int a) { return (int)(0u - (unsigned int)a); }
INLINE long long tc_negative(long long a) { return (long long)(0ull - (unsigned long long)a); }
INLINE unsigned int tc_negative(unsigned int a) { return 0u - a; }
INLINE unsigned long long tc_negative(unsigned long long a) { return 0ull - a; }
""",
    "tc_abs": """
template <typename T> INLINE T tc_abs(T a) { return a < T(0) ? tc_negative(a) : a; }
""",
    "tc_sign": """
template <typename T> INLINE T tc_sign(T a) { return a != a ? a : T((a > T(0)) - (a < T(0))); }
""",
    "tc_min": """
// The smaller value; NaN if an operand is NaN.
template <typename T> INLINE T tc_min(T a, T b) { return b < a || b != b ? (a != a ? a : b) : a; }
INLINE float tc_min(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float value;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
#else
    return b < a || b != b ? (a != a ? a : b) : a;
#endif
}
""",
    "tc_max": """
// The larger value; NaN if an operand is NaN.
template <typename T> INLINE T tc_max(T a, T b) { return a < b || b != b ? (a != a ? a : b) : a; }
INLINE float tc_max(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float value;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
#else
    return a < b || b != b ? (a != a ? a : b) : a;
#endif
}
""",
    "tc_sigmoid": """
INLINE float tc_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
INLINE double tc_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
""",
    "tc_to_int32": """
// Float to integer: toward zero, limited to the type, 0 for NaN.
INLINE int tc_to_int32(float x) { return x != x ? 0 : __float2int_rz(x); }
INLINE int tc_to_int32(double x) { return x != x ? 0 : __double2int_rz(x); }
""",
    "tc_to_uint32": """
INLINE unsigned int tc_to_uint32(float x) { return x != x ? 0u : __float2uint_rz(x); }
INLINE unsigned int tc_to_uint32(double x) { return x != x ? 0u : __double2uint_rz(x); }
""",
    "tc_to_int64": """
INLINE long long tc_to_int64(float x) { return x != x ? 0ll : __float2ll_rz(x); }
INLINE long long tc_to_int64(double x) { return x != x ? 0ll : __double2ll_rz(x); }
""",
    "tc_to_uint64": """
INLINE unsigned long long tc_to_uint64(float x) { return x != x ? 0ull : __float2ull_rz(x); }
INLINE unsigned long long tc_to_uint64(double x) { return x != x ? 0ull : __double2ull_rz(x); }
""",
    "tc_clamp": """
INLINE int tc_clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
""",
    "tc_bits": """
INLINE unsigned int tc_bits(float x) { return __float_as_uint(x); }
INLINE unsigned int tc_bits(int x) { return (unsigned int)x; }
INLINE unsigned int tc_bits(unsigned int x) { return x; }
INLINE void tc_value(unsigned int bits, float& x) { x = __uint_as_float(bits); }
INLINE void tc_value(unsigned int bits, int& x) { x = (int)bits; }
INLINE void tc_value(unsigned int bits, unsigned int& x) { x = bits; }
INLINE unsigned long long tc_bits(double x) { return (unsigned long long)__double_as_longlong(x); }
INLINE unsigned long long tc_bits(long long x) { return (unsigned long long)x; }
INLINE unsigned long long tc_bits(unsigned long long x) { return x; }
INLINE void tc_value(unsigned long long bits, double& x) { x = __longlong_as_double((long long)bits); }
INLINE void tc_value(unsigned long long bits, long long& x) { x = (long long)bits; }
INLINE void tc_value(unsigned long long bits, unsigned long long& x) { x = bits; }
""",
    "tc_atomic_update": """
// address[0] = combine(address[0]) where the hardware has no atomic operation. The first guess of the old value is 0.
template <typename WORD, typename T, typename COMBINE> INLINE void tc_atomic_update(T* address, COMBINE combine) {
    WORD seen = 0, expected;
    do {
        T value;
        expected = seen;
        tc_value(expected, value);
        seen = atomicCAS(reinterpret_cast<WORD*>(address), expected, tc_bits(combine(value)));
    } while (seen != expected);
}
""",
    "tc_atomic_update16": """
// The same on 16 bits: `combine` maps bits to bits.
template <typename COMBINE> INLINE void tc_atomic_update16(void* address, COMBINE combine) {
    unsigned short seen = 0, expected;
    do {
        expected = seen;
        seen = atomicCAS(reinterpret_cast<unsigned short*>(address), expected, (unsigned short)combine(expected));
    } while (seen != expected);
}
""",
    "tc_atomic_update8": """
// The same on one byte of an aligned word.
template <typename COMBINE> INLINE void tc_atomic_update8(void* address, COMBINE combine) {
    const unsigned long long place = reinterpret_cast<unsigned long long>(address);
    unsigned int* word = reinterpret_cast<unsigned int*>(place & ~3ull);
    const unsigned int shift = 8u * (unsigned int)(place & 3ull), mask = 0xffu << shift;
    unsigned int seen = 0, expected;
    do {
        expected = seen;
        const unsigned int next = (unsigned int)(unsigned char)combine((unsigned char)((expected & mask) >> shift)) <<
        shift; seen = atomicCAS(word, expected, (expected & ~mask) | next);
    } while (seen != expected);
}
""",
    "tc_record": """
// Keep the first failing check: its number + 1, then the values.
INLINE bool tc_record(long long* errors, long long number) {
    return atomicCAS(reinterpret_cast<unsigned long long*>(errors), 0ull, (unsigned long long)(number + 1)) == 0ull;
}
""",
}
"""Name -> text; `INLINE` stands for the qualifiers. A text may use other helpers."""


_HOME = {"tc_value": "tc_bits", "tc_shared_address": "tc_shared"}
"""Functions that stand in another helper's text."""


def helpers_called(code: str) -> set[str]:
    """The helpers whose functions a text calls."""
    names: list[str] = re.findall(r"\btc_\w+", code)
    return {_HOME.get(name, name) for name in names}


def helper_texts(used: Iterable[str], more: dict[str, str] | None = None) -> list[str]:
    """The texts of `used` helpers and of those that they use, each after what it needs.

    Args:
        more: further helpers by name (the inline PTX of `primitives.py`).
    """
    texts = HELPERS | (more or {})
    done: list[str] = []

    def add(name: str) -> None:
        if name in done:
            return
        for other in sorted(helpers_called(texts[name])):
            if other != name and other in texts:
                add(other)
        done.append(name)

    for name in sorted(set(used), key=list(texts).index):
        add(name)
    return [texts[name].strip("\n").replace("INLINE", _INLINE) for name in done]
