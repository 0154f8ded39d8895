"""`polygamma(n, x)` of `double` as a function in LLVM IR, which no library has with such arguments for generated code.

By the zeta function of Hurwitz, `(-1)^(n+1) n! zeta(n + 1, x)`: ten terms, and the sum of Euler and Maclaurin for the others. Where
`x` is not positive, the terms before and behind 0 are two such sums.

Source: Cephes, `zeta.c`, for the coefficients.
"""

from __future__ import annotations

from .builder import Builder

SYMBOL = "tc.polygamma"
_HURWITZ = "tc.hurwitz"
_TERMS = 10
_DIVISORS = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183791606, 74724249600.0, -2950130727918.164224,
    116467828143500.67249, -4597978722407472.6105, 181521054019435467.73, -7166165256175667011.3,
)  # fmt: skip
"""`(2k)! / B(2k)`, with the numbers of Bernoulli."""


def declare(b: Builder) -> None:
    """Put the function, and those that it calls, into the module."""
    for name, arguments in (("tc.pow", 2), ("tc.tgamma", 1)):
        kinds = ", ".join(["double"] * arguments)
        b.declare(name, f"declare double @{name}({kinds}) nounwind willreturn memory(none)")
    b.declare("tc.digamma", "declare double @tc.digamma(double, i32) nounwind willreturn memory(none)")
    for name in ("llvm.floor.f64", "llvm.ceil.f64"):
        b.declare(name, f"declare double @{name}(double)")
    b.declare(_HURWITZ, _hurwitz())
    b.declare(SYMBOL, _polygamma())


def _number(value: float) -> str:
    return repr(float(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{float(value):.17e}"


def _hurwitz() -> str:
    lines = [
        f"define internal double @{_HURWITZ}(double %s, double %q) nounwind willreturn memory(none) {{",
        "entry:",
        "  %minus = fneg double %s",
        "  br label %term",
        "term:",
        "  %k = phi i32 [ 0, %entry ], [ %after, %term ]",
        "  %w = phi double [ %q, %entry ], [ %next, %term ]",
        "  %sum = phi double [ 0.0, %entry ], [ %total, %term ]",
        "  %part = call double @tc.pow(double %w, double %minus)",
        "  %total = fadd double %sum, %part",
        "  %next = fadd double %w, 1.0",
        "  %after = add i32 %k, 1",
        f"  %more = icmp ult i32 %after, {_TERMS}",
        "  br i1 %more, label %term, label %rest",
        "rest:",
        "  %power.0 = call double @tc.pow(double %next, double %minus)",
        "  %below = fsub double 1.0, %s",
        "  %raised = call double @tc.pow(double %next, double %below)",
        "  %integral = fdiv double %raised, %below",
        "  %half = fmul double %power.0, 0.5",
        "  %first = fsub double %half, %integral",
        "  %value.0 = fadd double %total, %first",
        "  %rising.0 = fadd double %s, 0.0",
    ]
    for k, divisor in enumerate(_DIVISORS):
        lines += [
            f"  %power.{k}.a = fdiv double %power.{k}, %next",
            f"  %product.{k} = fmul double %rising.{k}, %power.{k}.a",
            f"  %scaled.{k} = fdiv double %product.{k}, {_number(divisor)}",
            f"  %value.{k + 1} = fadd double %value.{k}, %scaled.{k}",
            f"  %odd.{k} = fadd double %s, {_number(2 * k + 1)}",
            f"  %even.{k} = fadd double %s, {_number(2 * k + 2)}",
            f"  %both.{k} = fmul double %odd.{k}, %even.{k}",
            f"  %rising.{k + 1} = fmul double %rising.{k}, %both.{k}",
            f"  %power.{k + 1} = fdiv double %power.{k}.a, %next",
        ]
    return "\n".join([*lines, f"  ret double %value.{len(_DIVISORS)}", "}"])


def _polygamma() -> str:
    return f"""define internal double @{SYMBOL}(double %n, double %x) nounwind willreturn memory(none) {{
entry:
  %zero = fcmp oeq double %n, 0.0
  br i1 %zero, label %first, label %order
first:
  %digamma = call double @tc.digamma(double %x, i32 0)
  ret double %digamma
order:
  %below = call double @llvm.floor.f64(double %n)
  %whole = fcmp oeq double %n, %below
  %positive = fcmp ogt double %n, 0.0
  %known = and i1 %whole, %positive
  br i1 %known, label %signs, label %unknown
unknown:
  ret double 0x7FF8000000000000
signs:
  %s = fadd double %n, 1.0
  %factorial = call double @tc.tgamma(double %s)
  %halved = fmul double %s, 0.5
  %halves = call double @llvm.floor.f64(double %halved)
  %even = fcmp oeq double %halved, %halves
  %sign = select i1 %even, double 1.0, double -1.0
  %factor = fmul double %sign, %factorial
  %right = fcmp ogt double %x, 0.0
  br i1 %right, label %direct, label %left
direct:
  %plain = call double @{_HURWITZ}(double %s, double %x)
  br label %end
left:
  %start = call double @llvm.floor.f64(double %x)
  %y = fsub double %x, %start
  %pole = fcmp oeq double %y, 0.0
  br i1 %pole, label %end, label %reflected
reflected:
  %next = call double @llvm.ceil.f64(double %x)
  %mirrored = fsub double %next, %x
  %far = fsub double 1.0, %x
  %a = call double @{_HURWITZ}(double %s, double %y)
  %b = call double @{_HURWITZ}(double %s, double %mirrored)
  %c = call double @{_HURWITZ}(double %s, double %far)
  %difference = fsub double %b, %c
  %signed = fmul double %sign, %difference
  %sum = fadd double %a, %signed
  br label %end
end:
  %zeta = phi double [ %plain, %direct ], [ 0x7FF0000000000000, %left ], [ %sum, %reflected ]
  %result = fmul double %factor, %zeta
  ret double %result
}}"""
