"""The three rewrites as text, and the with-loop they print against the comprehension they print it for."""

import numpy as np
import pytest

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.program import ArgumentType, DType, Signature
from tc_jupyter.program.sac_rewrites import rewrites
from tc_jupyter.syntax import parse_sac
from tests.sac_call import call_sac, check


def steps(text, *arrays):
    checked, _ = check(text)
    (function,) = list(checked.functions.values())[-1]
    signature = None
    if arrays:
        signature = Signature(tuple(ArgumentType(DType(a.dtype.name), a.ndim, a.shape) for a in arrays))
    return rewrites(function.cell, function.function, signature)


def body(text, name, *arrays):
    """What the function returns after a step."""
    found = next(step for step in steps(text, *arrays).steps if step.name == name).text
    return found.rpartition("return ")[2].partition(";\n}")[0]


@pytest.mark.parametrize(
    "expression, wanted",
    [
        ("{ iv -> a[iv] + 1 }", "{ iv -> a[iv] + 1 | shape(a) * 0 <= iv < shape(a) }"),
        (
            "{ iv -> a[iv] + b[iv] }",
            "{ iv -> a[iv] + b[iv] | min(shape(a), shape(b)) * 0 <= iv < min(shape(a), shape(b)) }",
        ),
        ("{ iv -> a[iv] | [1] <= iv }", "{ iv -> a[iv] | [1] <= iv < take(shape([1]), shape(a)) }"),
        ("{ iv -> a[iv] | iv < [5] }", "{ iv -> a[iv] | [5] * 0 <= iv < [5] }"),
        ("{ iv -> a[iv] | [1] <= iv < [5] }", "{ iv -> a[iv] | [1] <= iv < [5] }"),
        (
            "{ [i] -> i | [3] <= [i]; iv -> a[iv] }",
            "{ [i] -> i | [3] <= [i] < .; iv -> a[iv] | shape(a) * 0 <= iv < shape(a) }",
        ),
        (
            "{ [i,j] -> a[j,i] + b[i] }",
            "{ [i, j] -> a[j, i] + b[i] | [min(shape(a)[1], shape(b)[0]), shape(a)[0]] * 0 <= [i, j] < [min(shape(a)[1], shape(b)[0]), shape(a)[0]] }",
        ),
        ("{ [i] -> a[i+1] }", "{ [i] -> a[i + 1] | [shape(a)[0] - 1] * 0 <= [i] < [shape(a)[0] - 1] }"),
        ("{ [i] -> a[2*i] }", "{ [i] -> a[2 * i] | [(shape(a)[0] + 1) / 2] * 0 <= [i] < [(shape(a)[0] + 1) / 2] }"),
    ],
)
def test_bound_inference(expression, wanted):
    assert body(f"int[*] f(int[*] a, int[*] b) {{ return {expression}; }}", "BI") == wanted


def test_names_of_nested_comprehensions_take_part():
    text = "int[*] f(int[.] a, int[.] w) { return { [i] -> sum({ [k] -> a[i+k]*w[k] }) }; }"
    assert "[i] < [shape(a)[0] - shape(w)[0] + 1]" in body(text, "BI")


def test_elimination_of_dots():
    text = "int[*] f(int[*] a, int[.] l, int[.] u) { return { [i, ., ., j, k, .] -> a | l <= [i,j,k] < u }; }"
    assert body(text, "ED") == (
        "{ [i, t1, t2, j, k, t3] -> a[[t1, t2, t3]] | [l[0], 0, 0, l[1], l[2], 0] <= [i, t1, t2, j, k, t3]"
        " < [u[0], shape(a)[0], shape(a)[1], u[1], u[2], shape(a)[2]] }"
    )


def test_triple_dots_are_as_many_names_as_the_call_has_axes():
    text = "int[*] f(int[*] a) { return { [i, ..., j] -> a + i | [i,j] < [5,6] }; }"
    assert body(text, "ED", np.ones((2, 3), np.int32)) == (
        "{ [i, t1, t2, j] -> (a + i)[[t1, t2]] | [0, 0, 0, 0] <= [i, t1, t2, j] < [5, 2, 3, 6] }"
    )
    assert "drop" not in body(text, "ED", np.ones((2, 3), np.int32))
    symbolic = steps(text).steps[2]
    assert "`t1` is a vector" in " ".join(symbolic.remarks)


def test_with_loops():
    assert body("int[*] f(int[*] a) { return { [i,j] -> i+j | [3,3] <= [i,j]; iv -> a[iv] }; }", "W") == (
        "with { ([3, 3] <= [i, j] < .) : i + j; } : modarray(a)"
    )
    assert body("int[*] f(int[*] a) { return { [i] -> a[i] | [i] < [5] }; }", "W") == (
        "with { ([5] * 0 <= [i] < [5]) : a[i]; } : genarray([5], genarray(drop([1], shape(a)), 0))"
    )


def test_the_default_element_of_the_paper():
    """`A[iv] + 1` has the shape `drop([length of iv], shape(A))`."""
    text = body("int[*] f(int[*] A) { return { iv -> A[iv] + 1 | [0] <= iv < take([1], shape(A)) }; }", "W")
    assert text.endswith(": genarray(take([1], shape(A)), genarray(drop([1], shape(A)), 0))")


def test_reductions_say_that_nothing_is_stored():
    found = steps("int[*] f(int[*] a) { return { [i] -> sum({ [k] -> a[i,k] }) }; }")
    assert "not stored" in " ".join(found.steps[-1].remarks)
    assert found.text.count("// ") >= 4


def test_changed_parts_are_marked():
    first, second = steps("int[*] f(int[*] a) { return { iv -> a[iv] }; }").steps[:2]
    (span,) = second.changed
    assert second.text[span.start : span.end] == "| shape(a) * 0 <= iv < shape(a)"
    assert first.changed == ()


EXAMPLES = [
    ("{ iv -> a[iv] + 1 }", (3, 4)),
    ("{ [i] -> a[i] * 2 }", (3, 2)),
    ("{ [i, .] -> a[i] + i }", (3, 2)),
    ("{ [., i] -> a[i] }", (3, 2)),
    ("{ [i, ...] -> a + i | [i] < [5] }", (2, 2)),
    ("{ [..., i] -> a + i | [i] < [5] }", (2, 2)),
    ("{ [., i, ..., j, .] -> a + i * j | [i,j] < [2,3] }", (2, 1, 3)),
    ("{ [i,j] -> i+j | [1,1] <= [i,j]; iv -> a[iv] }", (3, 4)),
    ("{ [i,j] -> i+j | [1,1] <= [i,j] < [2,2]; iv -> 7 * a[iv] }", (3, 4)),
    ("{ iv -> 5 | iv < [2]; iv -> a[iv] | [1] <= iv }", (4,)),
    ("{ [i] -> sum({ [k] -> a[i,k] * a[k,i] }) }", (3, 3)),
    ("{ [i] -> { [j] -> a[j,i] } }", (3, 2)),
    ("sum({ [i] -> a[i+1] - a[i] })", (4,)),
    ("{ [i] -> a[i] + sum({ [i] -> a[i + 3] }) }", (5,)),  # an inner name is another one, though it is spelled the same
    ("{ [i] -> a[i] * sum({ [j] -> a[j] | [j] < [2] }) + sum({ [j] -> a[j] | [j] < [4] }) }", (5,)),
    ("{ v = [i, j] -> a[v] + sum({ [i] -> a[v[0], i] }) }", (3, 4)),
    ("{ v = [i] -> a[v] + with { ([0] <= v < [2]) : a[v]; } : fold(+, 0) }", (4,)),
    ("{ v = [i] -> a[v] + with { ([0] <= [i] < [2]) : a[v] * i; } : fold(+, 0) }", (4,)),
]


@pytest.mark.parametrize("step", ["BI", "ED", "W"])
@pytest.mark.parametrize("expression, shape", EXAMPLES)
def test_every_step_computes_the_same(expression, shape, step):
    text = f"long[*] f(long[*] a) {{ return {expression}; }}"
    a = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    found = next(s for s in steps(text, a).steps if s.name == step)
    assert not parse_sac(SourceText(found.text)).diagnostics
    want, got = call_sac(text, a), call_sac(found.text, a)
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("expression, shape", [e for e in EXAMPLES if "..." not in e[0]])
def test_the_symbolic_with_loop_computes_the_same(expression, shape):
    text = f"long[*] f(long[*] a) {{ return {expression}; }}"
    a = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    assert call_sac(steps(text).steps[-1].text, a).tolist() == call_sac(text, a).tolist()


@pytest.mark.parametrize(
    "text, arguments, wanted",
    [
        (
            "int[*] f(int[*] a) { return { [i] -> sum({ [j] -> a[i+j] | [j] < [2] }) }; }",
            (np.arange(5, dtype=np.int32),),
            "genarray([2], genarray(drop([1], shape(a)), 0))",
        ),
        (
            "int[*] f(int[*] a, int n) { k = n + 1; return { [i] -> { [j] -> a[i*j+k-n-1] | [j] < [2] } | [i] < [3] }; }",
            (np.arange(9, dtype=np.int32), np.int32(1)),
            "genarray([2], genarray(drop([1], shape(a)), 0))",
        ),
        (
            "int[*] f(int[*] a) { return with { ([0] <= [i] < [2]) : sum({ [j] -> a[i+j] | [j] < [2] }); } : genarray([2], 0); }",
            (np.arange(9, dtype=np.int32),),
            "genarray([2], genarray(drop([1], shape(a)), 0))",
        ),
        (
            "int[*] f(int[*] a, int n) { return { [i,.] -> a[i] | [i] < n }; }",
            (np.arange(6, dtype=np.int32).reshape(3, 2), np.int32(2)),
            "([0, 0] <= [i, t1] < [n, drop([1], shape(a))[0]])",
        ),
        (
            "int[*] f(int[.,.] a, int n) { m = n + 1; return { [i,.] -> a[i] | [i] < [3] step m width n; [i,.] -> -a[i] }; }",
            (np.arange(6, dtype=np.int32).reshape(3, 2), np.int32(1)),
            "step [m, 1] width [n, 1]",
        ),
    ],
    ids=["indices around", "a scalar variable", "indices of a with-loop", "a scalar bound", "a scalar step"],
)
def test_names_of_rank_0_are_known_wherever_they_come_from(text, arguments, wanted):
    """The default element had the shape `drop(shape(i + 0), shape(a))`, and a scalar bound became `n[0]`."""
    written = steps(text).steps[-1].text
    assert wanted in written
    np.testing.assert_array_equal(call_sac(written, *arguments), call_sac(text, *arguments))
