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
    "tc_int8": """
// The lowest byte with its sign. NVRTC (13.5) takes a sum of bytes that were loaded side by side for a number that has
// its sign already, and shifts or compares it wrongly; of what `asm` gives it assumes nothing.
INLINE int tc_int8(int a) { asm("cvt.s32.s8 %0, %0;" : "+r"(a)); return a; }
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
    "tc_shift_left": """
// A shift by the width or more, or by a negative number, shifts everything out.
template <typename T> INLINE T tc_shift_left(T a, T b) {
    return b < T(0) || b >= T(8 * sizeof(T)) ? T(0) : (T)((unsigned long long)a << b);
}
""",
    "tc_shift_right": """
// The sign stays.
template <typename T> INLINE T tc_shift_right(T a, T b) {
    return b < T(0) || b >= T(8 * sizeof(T)) ? (a < T(0) ? T(-1) : T(0)) : (T)(a >> b);
}
""",
    "tc_philox": """
// A word of Philox4x32-10.
// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
template <int WORD> INLINE unsigned int tc_philox(unsigned int k0, unsigned int k1, unsigned int c0, unsigned int c1,
                                                  unsigned int c2, unsigned int c3) {
    #pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned int high0 = __umulhi(0xD2511F53u, c0), high1 = __umulhi(0xCD9E8D57u, c2);
        unsigned int low0 = 0xD2511F53u * c0, low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return WORD == 0 ? c0 : c1;
}
""",
    "tc_negative": """
INLINE int tc_negative(int a) { return (int)(0u - (unsigned int)a); }
INLINE long long tc_negative(long long a) { return (long long)(0ull - (unsigned long long)a); }
INLINE unsigned int tc_negative(unsigned int a) { return 0u - a; }
INLINE unsigned long long tc_negative(unsigned long long a) { return 0ull - a; }
""",
    "tc_digamma": """
// Reflected to positive numbers, then moved to 1..2, where a rational function knows the zero, or to the asymptotic series.
// Source: boost/math/special_functions/digamma.hpp, and Cephes, psi.c.
INLINE double tc_digamma(double x) {
    double result = 0.0;
    if (x == 0.0) return copysign(__longlong_as_double(0x7ff0000000000000ll), -x);
    if (x < 0.0) {
        double part = x - trunc(x);
        if (!(part != 0.0)) return __longlong_as_double(0x7ff8000000000000ll);
        result = -3.14159265358979323846 * cospi(part) / sinpi(part);
        x = 1.0 - x;
    }
    if (x < 1.0) {
        result -= 1.0 / x;
        x += 1.0;
    } else if (x < 10.0) {
        while (x > 2.0) {
            x -= 1.0;
            result += 1.0 / x;
        }
    }
    if (x <= 2.0) {
        double g = x - 1569415565.0 / 1073741824.0, z = x - 1.0;
        g -= 381566830.0 / 1073741824.0 / 1073741824.0;
        g -= 0.9016312093258695918615325266959189453125e-19;
        double p = -0.0020713321167745952, q = -0.55789841321675513e-6;
        p = p * z - 0.045251321448739056;
        p = p * z - 0.28919126444774784;
        p = p * z - 0.65031853770896507;
        p = p * z - 0.32555031186804491;
        p = p * z + 0.25479851061131551;
        q = q * z + 0.0021284987017821144;
        q = q * z + 0.054151797245674225;
        q = q * z + 0.43593529692665969;
        q = q * z + 1.4606242909763515;
        q = q * z + 2.0767117023730469;
        q = q * z + 1.0;
        return result + (g * 0.99558162689208984 + g * (p / q));
    }
    double z = 1.0 / (x * x), y = 8.33333333333333333333e-2;
    y = y * z - 2.10927960927960927961e-2;
    y = y * z + 7.57575757575757575758e-3;
    y = y * z - 4.16666666666666666667e-3;
    y = y * z + 3.96825396825396825397e-3;
    y = y * z - 8.33333333333333333333e-3;
    y = y * z + 8.33333333333333333333e-2;
    return result + (log(x) - 0.5 / x - z * y);
}
""",
    "tc_polygamma": """
// The sum of (q + k)^-s over k >= 0 for q > 0: ten terms, and the sum of Euler and Maclaurin for the others.
INLINE double tc_hurwitz(double s, double q) {
    const double by[12] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183791606, 74724249600.0,
        -2950130727918.164224, 116467828143500.67249, -4597978722407472.6105, 181521054019435467.73, -7166165256175667011.3};
    double sum = 0.0;
    for (int k = 0; k < 10; k++, q += 1.0) sum += pow(q, -s);
    double power = pow(q, -s), rising = 1.0;
    sum += pow(q, 1.0 - s) / (s - 1.0) + 0.5 * power;
    for (int k = 0; k < 12; k++) {
        rising *= s + 2 * k;
        power /= q;
        sum += rising * power / by[k];
        rising *= s + 2 * k + 1;
        power /= q;
    }
    return sum;
}
INLINE double tc_polygamma(double order, double x) {
    if (order == 0.0) return tc_digamma(x);
    if (!(order > 0.0 && order == floor(order))) return __longlong_as_double(0x7ff8000000000000ll);
    double s = order + 1.0, sign = order == 2.0 * floor(order * 0.5) ? -1.0 : 1.0, y = x - floor(x), zeta;
    if (x > 0.0) zeta = tc_hurwitz(s, x);
    else if (y == 0.0) zeta = __longlong_as_double(0x7ff0000000000000ll);
    else zeta = tc_hurwitz(s, y) + sign * (tc_hurwitz(s, ceil(x) - x) - tc_hurwitz(s, 1.0 - x));
    return sign * tgamma(s) * zeta;
}
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
