"""Specialisation of `%%sac` functions: statements, ranks, demanded values, folds, calls between languages, messages at a call."""

import time

import numpy as np
import pytest

from tc_jupyter import compile as compiled
from tc_jupyter.diagnostics import CallError, CompileError, SourceText
from tc_jupyter.program import ArgumentType, DType, Signature, check_tc, specialize
from tc_jupyter.program.sac_helpers import expr_text
from tc_jupyter.program.sac_primitives import builtin_names
from tc_jupyter.ranges import infer_ranges
from tc_jupyter.schedule import schedule_of
from tc_jupyter.syntax import parse_tc
from tests.running import run
from tests.sac_call import Refused, bind, call_sac, check
from tests.sac_evaluator import evaluate, from_numpy

I32, I64, F32, F64 = np.int32, np.int64, np.float32, np.float64


def statements(text, *types, name=None):
    """The statements of the last function, as text."""
    checked, _ = check(text)
    (function,) = checked.functions[name or list(checked.functions)[-1]]
    found = specialize(function.cell, function.function, Signature(tuple(ArgumentType(*t) for t in types)))
    assert found.program is not None, [d.message for d in found.diagnostics]
    lines = []
    for s in found.program.statements:
        ranges = ", ".join(f"{i.name} in {expr_text(i.where[0])}:{expr_text(i.where[1])}" for i in s.indices)
        sign = {"=": "="}.get(s.operator, f"{s.operator}={'!' if s.initialize else ''}")
        lines.append(
            f"{s.target}({', '.join(i.name for i in s.output_indices)}) {sign} {expr_text(s.value)} where {ranges}"
        )
    return lines


def test_a_map_is_one_statement():
    text = "float[*] f(float[*] A) { return { iv -> A[iv] + 1 }; }"
    assert statements(text, (DType.FLOAT32, 2)) == [
        "result(iv0, iv1) = A[iv0, iv1] + 1 where iv0 in 0:A_0, iv1 in 0:A_1"
    ]
    assert statements(text, (DType.FLOAT32, 0)) == ["result() = A + 1 where "]


def test_a_reduction_writes_the_result_directly():
    text = "float[*] f(float[.,.] A, float[.,.] B) { return { [i,j] -> sum({ [k] -> A[i,k] * B[k,j] }) }; }"
    assert statements(text, (DType.FLOAT32, 2), (DType.FLOAT32, 2)) == [
        "result(i, j) +=! A[i, k] * B[k, j] where i in 0:A_0, j in 0:B_1, k in 0:min(A_1, B_0)"
    ]


def test_nested_comprehensions_are_fused():
    text = "float[*] f(float[*] A) { B = { iv -> A[iv] * 2 }; C = { iv -> B[iv] + 1 }; return { [i] -> C[i] }; }"
    assert statements(text, (DType.FLOAT32, 2)) == [
        "result(i, t0) = 2 * A[i, t0] + 1 where i in 0:A_0, t0 in 0:A_1"
    ] or statements(text, (DType.FLOAT32, 2)) == ["result(i, t0) = A[i, t0] * 2 + 1 where i in 0:A_0, t0 in 0:A_1"]


def test_a_dear_variable_that_is_used_twice_is_stored():
    text = "float[*] f(float[*] x) { e = exp(x - maxval(x)); return e / sum(e); }"
    assert [line.split(" ")[0] for line in statements(text, (DType.FLOAT32, 1))] == [
        "maxval()",
        "e(i0)",
        "sum()",
        "result(i0)",
    ]


def test_border_and_inner_region_are_disjoint_boxes_without_branches():
    lines = statements(
        "float[*] f(float[*] a) { return { iv -> 0 * a[iv] | [1,1] <= iv < shape(a)-1; iv -> a[iv] }; }",
        (DType.FLOAT32, 2),
    )
    assert len(lines) == 5
    assert not any(" if " in line for line in lines)


def test_zeros_are_written_only_where_holes_are():
    assert len(statements("int[.] f() { return { iv -> 1 | [0] <= iv < [5] }; }")) == 1
    assert len(statements("int[.] f() { return { iv -> 1 | [2] <= iv < [5] }; }")) == 2


def test_a_scalar_argument_stays_a_symbol_in_a_shape():
    (line,) = statements("int[.] f(int n) { return { [i] -> i * 2 | [i] < [n] }; }", (DType.INT32, 0))
    assert "i in 0:n" in line


def test_values_are_asked_for_only_where_a_shape_needs_them():
    call, _ = bind("int[*] f(int[.] s, int[*] a) { return genarray(s, a); }", I32([2, 3]), I32([1, 2]))
    assert call.signature.values == ((0, (2, 3)),)
    call, _ = bind("int[*] f(int[.] s, int[*] a) { return a + sum(s); }", I32([2, 3]), I32([1, 2]))
    assert call.signature.values == ()


def test_a_shape_from_computed_data():
    text = "int[*] f(int[.] v, int[.] a) { return take([minval(v)], a); }"
    assert call_sac(text, I32([3, 2]), I32([5, 6, 7])).tolist() == [5, 6]


@pytest.mark.parametrize("rank", range(7))
def test_all_ranks(rank):
    a = np.arange(np.prod(shape := (3, 2, 3, 1, 2, 3)[:rank], dtype=int), dtype=F64).reshape(shape)
    text = (
        "double[*] f(double[*] a) { return with { (0*shape(a)+1 <= iv < shape(a)) : a[iv] + a[iv-1]; } : modarray(a); }"
    )
    (want,) = evaluate(text, from_numpy(a))
    got = call_sac(text, a)
    assert got.shape == a.shape
    assert got.ravel().tolist() == want.data


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3), (1, 1), (1, 2)])
@pytest.mark.parametrize(
    "text",
    [
        "double[*] f(double[*] a) { return { iv -> a[iv] * 2 | 0*shape(a)+1 <= iv < shape(a)-1; iv -> a[iv] }; }",
        "double[*] f(double[*] a) { return { [i] -> a[i] / (1 + sum(a[0])) }; }",
        "double[*] f(double[*] a) { return reverse(transpose(a)) ++ transpose(a); }",
        "double[*] f(double[*] a) { return { [i, ...] -> sum(a) + a[i] }; }",
    ],
)
def test_empty_and_thin_axes(text, shape):
    a = np.arange(np.prod(shape), dtype=F64).reshape(shape)
    (want,) = evaluate(text, from_numpy(a))
    got = call_sac(text, a)
    assert (got.shape, got.ravel().tolist()) == (want.shape, want.data)


# Folds

FOLDS = """
int gcdlike(int a, int b) { return a * b + a + b; }
int smaller(int a, int b) { return a < b ? a : b; }
int added(int a, int b) { return b + a; }
"""


@pytest.mark.parametrize(
    "operator, neutral", [("+", 5), ("*", 2), ("min", 3), ("max", 3), ("gcdlike", 0), ("smaller", 9), ("added", 1)]
)
def test_folds(operator, neutral):
    text = (
        FOLDS
        + f"int f(int[.] v) {{ return with {{ ([0] <= iv < shape(v)) : v[iv]; ([1] <= iv < [2]) : 100; }} : fold({operator}, {neutral}); }}"
    )
    for values in ([4, 7, 2], [4, 7]):
        (want,) = evaluate(text, from_numpy(np.array(values)), name="f")
        assert call_sac(text, I32(values), name="f").tolist() == want.data[0]


def test_a_users_function_becomes_an_operator_where_it_is_one():
    def operator(name):
        text = FOLDS + f"int f(int[.] v) {{ return with {{ ([0] <= iv < shape(v)) : v[iv]; }} : fold({name}, 0); }}"
        call, _ = bind(text, I32([1]), name="f")
        return call.specialized.program.statements[-1].operator

    assert [operator(n) for n in ("added", "smaller", "gcdlike")] == ["+", "min", "fold"]


def test_a_fold_inside_a_comprehension():
    text = (
        FOLDS
        + "int[.] f(int[.,.] m) { return { [i] -> with { ([0] <= [k] < [shape(m)[1]]) : m[i,k]; } : fold(gcdlike, 0) | [i] < [shape(m)[0]] }; }"
    )
    m = I32([[1, 2], [3, 4]])
    assert call_sac(text, m, name="f").tolist() == [5, 19]


def test_logical_folds():
    text = "bool f(int[.] v) { return with { ([0] <= iv < shape(v)) : v[iv] > 0; } : fold(&&, true); }"
    assert bool(call_sac(text, I32([1, 2]))) is True
    assert bool(call_sac(text, I32([1, -2]))) is False
    assert bool(call_sac(text, I32([]))) is True


# Types


@pytest.mark.parametrize(
    "body, argument, dtype, want",
    [
        ("a + 1", F32([1]), "float", [2]),
        ("a * 0.5", F32([1]), "float", [0.5]),
        ("a / 2", I32([-7]), "int", [-3]),
        ("a % 2", I32([-7]), "int", [-1]),
        ("tof(a) / 2", I32([1]), "float", [0.5]),
        ("a + 0.5", I32([1]), "double", [1.5]),
        ("a > 1", I32([1, 2]), "bool", [False, True]),
        ("shape(a) * 2", F32([1, 2]), "int", [4]),
        ("-a", np.float16([1]), "float16", [-1]),
        ("a + a", np.uint8([200]), "uint8", [144]),
        ("sqrt(a)", F32([4]), "float", [2]),
        ("min(a, 2)", I32([1, 5]), "int", [1, 2]),
    ],
)
def test_types(body, argument, dtype, want):
    base = {"float32": "float", "int32": "int", "float64": "double"}.get(argument.dtype.name, argument.dtype.name)
    got = call_sac(f"{dtype}[.] f({base}[.] a) {{ return {body}; }}", argument)
    assert got.tolist() == want


def test_several_results_scalars_in_and_out():
    text = "int, float[.] f(int n, float[.] x) { s = sum(x); return (n + 1, x / s); }"
    n, y = call_sac(text, I32(4), F32([1, 3]))
    assert n.shape == ()
    assert int(n) == 5
    assert y.tolist() == [0.25, 0.75]


# Calls


def tc(text):
    source = SourceText(text)
    parsed = parse_tc(source)
    return dict(check_tc(parsed.unit, source).programs)


def interpreted(call, arrays):
    program = call.specialized.program
    ranges = infer_ranges(program)
    assert not [d for d in ranges.diagnostics if d.is_error]
    held = dict(zip(program.parameters, arrays, strict=True))
    sizes = {
        d.name: n
        for p, a in held.items()
        for d, n in zip(program.tensor(p).dims, a.shape, strict=True)
        if hasattr(d, "name")
    }
    return run(schedule_of(program, ranges), held, sizes)[program.results[0]]


def test_a_tc_def_is_called_and_starts_at_0_again():
    known = tc("def shift(float(N) X) -> (Y) { Y(i) = X(i-1) * 2 }")
    call, arrays = bind("float[.] f(float[.] v) { return reverse(shift(v + 1)) + 1; }", F32([1, 2, 3]), known=known)
    assert interpreted(call, arrays).tolist() == [9, 7, 5]


@pytest.mark.some(4)
@pytest.mark.parametrize("name", builtin_names())
def test_a_function_of_the_cell_or_of_another_one_wins_over_a_builtin_of_its_name(name):
    caller = f"float[.] f(float[.] v) {{ return {name}(v + 1) + 1; }}"
    own = f"float[.] {name}(float[.] a) {{ return a * 2; }}"
    assert call_sac(own + caller, F32([1, 2]), name="f").tolist() == [5, 7]
    (of_tc,) = tc("def g(float(N) X) -> (Y) { Y(i) = X(i) * 2 }").values()
    for known in (of_tc, check(own)[0].functions[name][0]):
        call, arrays = bind(caller, F32([1, 2]), known={name: known})
        assert interpreted(call, arrays).tolist() == [5, 7]


def test_a_builtin_is_called_where_the_def_of_its_name_takes_other_arguments():
    known = tc("def shift(float(N) X) -> (Y) { Y(i) = X(i) * 2 }")
    call, arrays = bind("float[.] f(float[.] v) { return shift([1], shift(v)); }", F32([1, 2, 3]), known=known)
    assert interpreted(call, arrays).tolist() == [0, 2, 4]


def test_names_of_other_cells_have_no_demands_of_a_builtin():
    known = tc("def take(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }")
    text = "float[.,.] f(float[.,.] m) { return { [i] -> take({ [j] -> m[i, j] * i }, m[i]) }; }"
    call, arrays = bind(text, F32([[1, 2], [3, 4]]), known=known)
    assert interpreted(call, arrays).tolist() == [[1, 2], [6, 8]]


def test_several_results_of_a_def_with_the_name_of_a_builtin():
    known = tc("def iota(float(N) X) -> (Y, Z) { Y(i) = X(i) + 1\n Z(i) = X(i) + 2 }")
    call, arrays = bind("float[.] f(float[.] v) { a, b = iota(v); return a * b; }", F32([1, 2]), known=known)
    assert interpreted(call, arrays).tolist() == [6, 12]


def test_a_tc_def_is_called_before_the_bound_of_its_index_is_known():
    known = tc("def g(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) where i in 0:N, exists X(i) }")
    text = "float[.,.] f(float[.,.] m) { return { [i] -> g({ [j] -> m[i, j] * i }, m[i]) }; }"
    call, arrays = bind(text, F32([[1, 2], [3, 4]]), known=known)
    assert interpreted(call, arrays).tolist() == [[1, 2], [6, 8]]


def test_a_tc_def_inside_a_comprehension_gets_the_index():
    known = tc("def total(float(N) X) -> (s) { s +=! X(k) }")
    call, arrays = bind(
        "float[.] f(float[.,.] m) { return { [i] -> total(m[i]) | [i] < [shape(m)[0]] }; }",
        F32([[1, 2], [3, 4]]),
        known=known,
    )
    assert interpreted(call, arrays).tolist() == [3, 7]


def test_a_sac_function_is_called_from_tc():
    checked, _ = check("float[.] twice(float[.] v) { return v * 2; }")
    program = checked.functions["twice"][0].program
    source = SourceText("def f(float(N) X) -> (Y) { T = twice(X)\n Y(i) = T(i) + 1 }")
    parsed = parse_tc(source)
    found = check_tc(parsed.unit, source, {"twice": program})
    assert not [d for d in found.diagnostics if d.is_error]
    ranges = infer_ranges(found.programs["f"])
    got = run(schedule_of(found.programs["f"], ranges), {"X": F32([1, 2])}, {"N": 2})
    assert got["Y"].tolist() == [3, 5]


def test_overloads_by_rank_and_type():
    text = """
int f(int a) { return 0; }
int f(int[.] a) { return 1; }
int f(int[+] a) { return 2; }
int f(double[*] a) { return 3; }
int g(int[*] a) { return f(a); }
"""
    assert [int(call_sac(text, x, name="f")) for x in (I32(1), I32([1]), I32([[1]]), F64([1]))] == [0, 1, 2, 3]
    assert [int(call_sac(text, x, name="g")) for x in (I32(1), I32([1]), I32([[1]]))] == [0, 1, 2]


def test_what_is_stored_while_the_length_of_an_index_is_sought_is_stored_again():
    text = "float[.] f(float[.] x, int s) { y = x ++ [9f]; return { iv -> y[[s]]; iv -> x[iv] | iv < shape(x) }; }"
    np.testing.assert_array_equal(call_sac(text, np.arange(6, dtype=F32), I32(3)), np.full(6, 3, F32))


def test_assigning_again_and_inner_names():
    text = "int[*] f(int[.] i) { x = i; x = x + 1; y = { [i] -> x[i] * i }; return y + i + x; }"
    assert call_sac(text, I32([5, 6])).tolist() == [11, 20]


# Messages at the call


@pytest.mark.parametrize(
    "text, arguments, wanted",
    [
        ("int f(int[.,.] a) { return sum(a); }", (I32([1]),), "TC651"),
        ("int f(int[2] a) { return sum(a); }", (I32([1]),), "TC651"),
        ("int f(int[*] a) { return sum(a); }", (F32([1]),), "TC651"),
        ("int f(int a) { return a; } int f(int[.] a) { return 1; }", (I32([[1]]),), "TC651"),
        ("int f(int a) { return a; }", (I32(1), I32(2)), "TC606"),
        ("int[3] f(int[*] a) { return a; }", (I32([1]),), "TC651"),
        ("int[.] f(int[*] a) { return a; }", (I32([[1]]),), "TC254"),
        ("int[*] f(int[*] a, int[*] b) { return a + b; }", (I32([1]), I32([1, 2])), "TC654"),
        ("int[*] f(int[*] a, int[*] b) { return a + b; }", (I32([1]), I32([[1]])), "TC654"),
        ("int[*] f(int[*] a) { return take([3], a); }", (I32([1]),), "TC652"),
        ("int[*] f(int[*] a, int[.] u) { return { iv -> 1 | iv < u }; }", (I32([1]), I32([-1])), "TC655"),
        ("int[*] f(int n) { return { [i] -> i | [i] < [n] }; }", (I32(-2),), "TC655"),
        ("int[*] f(int[*] a) { return { [i] -> 1 | [i] < [4]; iv -> a[iv] }; }", (I32([1]),), "TC653"),
        ("int[*] f(int[*] a) { return { [i] -> a[i-1] | [1] <= [i]; iv -> a[iv] }; }", (I32([1, 2]),), "TC653"),
        (
            "int[*] f(int[*] a, int k) { return { [i] -> 1 | [k] <= [i] < [1]; iv -> a[iv] }; }",
            (I32([1, 2]), I32(-1)),
            "TC653",
        ),
        ("int[*] f(int[*] a) { return { [i,j] -> a[i] }; }", (I32([1, 2]),), "TC351"),
        ("int[*] f(int[*] a) { return { [i] -> a[i] ++ [1]; iv -> a[iv] }; }", (I32([[1], [2]]),), "TC654"),
    ],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_messages_at_the_call(text, arguments, wanted, fixed):
    with pytest.raises(Refused) as caught:
        call_sac(text, *arguments, name="f", fixed=fixed)
    assert wanted in caught.value.codes
    assert all(d.message and text[d.span.start : d.span.end] for d in caught.value.diagnostics)


def test_a_failed_check_shows_its_numbers():
    with pytest.raises(Refused) as caught:
        call_sac("int[*] f(int[*] a, int[*] b) { return a + b; }", I32([1]), I32([1, 2]))
    assert "one is 1, the other is 2" in caught.value.diagnostics[0].message


def test_exactness_of_partitions_that_need_the_numbers():
    """So many partitions with unknown order that symbols would give too many boxes."""
    parts = "; ".join(
        f"iv -> {k} | shape({low}) <= iv < shape({high})"
        for k, (low, high) in enumerate(["bc", "cd", "de", "bd", "ce"])
    )
    text = f"int[*] f(int[.,.,.] a, int[.,.,.] b, int[.,.,.] c, int[.,.,.] d, int[.,.,.] e) {{ return {{ {parts}; iv -> a[iv] }}; }}"
    arrays = [np.zeros(s, I32) for s in ((4, 4, 4), (1, 1, 1), (2, 3, 3), (3, 3, 4), (4, 4, 4))]  # no empty axis
    call, _ = bind(text, *arrays)
    assert call.signature.arguments[0].extents == (4, 4, 4)
    (want,) = evaluate(text, *map(from_numpy, arrays))
    assert call_sac(text, *arrays).ravel().tolist() == want.data


def test_specialisation_of_a_new_rank_is_fast():
    text = "double[*] f(double[*] a) { return with { (0*shape(a)+1 <= iv < shape(a)-1) : a[iv] * 2 + sum(iv); } : modarray(a); }"
    checked, _ = check(text)
    (function,) = checked.functions["f"]
    start = time.process_time()
    found = specialize(function.cell, function.function, Signature((ArgumentType(DType.FLOAT64, 6),)))
    assert found.ok
    assert time.process_time() - start < 2  # a bound for runaway work, not a measurement
    assert len(found.program.statements) == 13


@pytest.mark.parametrize(
    "text, wanted",
    [
        (
            "double[*] f(double[*] a0) {\n" + "".join(f"a{k + 1} = a{k} + 1;\n" for k in range(300)) + "return a300; }",
            None,
        ),
        (
            "double[*] f(double[*] a0) {\n"
            + "".join(f"a{k + 1} = (a{k} + a{k}) / 2;\n" for k in range(90))
            + "return a90; }",
            None,
        ),
        ("double[*] f(double[*] a) { return " + "{ iv -> (" * 25 + "a" + ")[iv] + 1 }" * 25 + "; }", None),
        ("double[*] f(double[*] a) { return " + "{ [i] -> sum(" * 12 + "a" + ") + a[i] }" * 12 + "; }", None),
        (
            "".join(f"double[*] g{k}(double[*] a) {{ return g{k + 1}(a) + g{k + 1}(a); }}\n" for k in range(30))
            + "double[*] g30(double[*] a) { return a; }\ndouble[*] f(double[*] a) { return g0(a); }",
            "TC503",
        ),
    ],
)
def test_texts_whose_expansion_would_explode_take_bounded_time(text, wanted):
    start = time.process_time()
    if wanted is None:
        assert call_sac(text, F64([1, 2])).shape == (2,)
    else:
        with pytest.raises(Refused, match=wanted):
            call_sac(text, F64([1, 2]), name="f")
    assert time.process_time() - start < 20  # a bound for runaway work, not a measurement


def _halves(word, more=""):
    return "".join(f"{word} g{k}({word} x) {{ return g{k - 1}(g{k - 1}(x)); }}\n" for k in range(1, 9)) + more


VECTOR = np.arange(2, dtype=np.int32) + 2
GROWING = [
    ("joined with itself, known", "int[*] f() { x = [2]; " + "x = x ++ x; " * 20 + "return genarray(x, 0); }", ()),
    ("joined with itself, elements unknown", "int[*] f(int[.] a) { " + "a = a ++ a; " * 40 + "return a; }", (VECTOR,)),
    ("joined with itself in a loop", "int f() { x = [2]; for (i = 0; i < 200; i++) x = x ++ x; return sum(x); }", ()),
    ("joined floats", "float f() { x = [2.0f]; for (i = 0; i < 30; i++) x = x ++ x; return sum(x); }", ()),
    ("only its length", "int f() { x = [2]; for (i = 0; i < 200; i++) x = x ++ x; return shape(x)[0]; }", ()),
    ("dropped", "int[*] f() { x = [1, 2]; for (i = 0; i < 30; i++) x = drop([1], x ++ x); return x; }", ()),
    ("taken", "int[*] f() { x = [1]; for (i = 0; i < 30; i++) x = take(shape(x), x ++ x) ++ x; return x; }", ()),
    ("nested", "int f() { x = [1, 2]; for (i = 0; i < 30; i++) x = [x, x]; return sum(x); }", ()),
    ("nested, unknown", "int[*] f(int[.] a) { for (i = 0; i < 24; i++) a = [a, a]; return a; }", (VECTOR,)),
    ("comprehensions", "int[*] f() { x = [1]; for (i = 0; i < 20; i++) x = { iv -> x[iv] + 1 } ++ x; return x; }", ()),
    ("long frames", "int[*] f() { x = genarray([30000], 1); return genarray(x ++ x, 0); }", ()),

    ("ways", "int f(int a) { " + "".join(f"if (a > {k}) a = a + a; else a = a * 3 - a; " for k in range(400)) + "return a; }", (VECTOR[0],)),
    ("calls", "int[*] g0(int[*] x) { return x ++ x; }\n" + _halves("int[*]", "int[*] f(int[.] a) { return g8(a); }"), (VECTOR,)),
    ("calls, known", "int[*] g0(int[*] x) { return x ++ x; }\n" + _halves("int[*]", "int[*] f() { return g8([1]); }"), ()),
]  # fmt: skip


@pytest.mark.parametrize("text, arguments", [each[1:] for each in GROWING], ids=[each[0] for each in GROWING])
def test_values_that_grow_are_a_limit_in_bounded_time_and_memory(text, arguments):
    """They took minutes and gigabytes, or ended with a `RecursionError` in a later stage."""
    start = time.process_time()
    with pytest.raises((CompileError, CallError), match=r"TC50[38]"):
        compiled(text, language="sac", target="interpreter").f(*arguments)
    assert time.process_time() - start < 10  # a bound for runaway work, not a measurement


IN_ORDER = [
    ("halves", "int[*] f(int[.] a) { for (i = 0; i < 200; i++) { n = shape(a) / 2; a = take(n, a) ++ drop(n, a); } return a; }", (VECTOR,), VECTOR),
    ("choices", "int f(int a) { for (i = 0; i < 250; i++) { a = a > i ? a * 2 : a + a; a = a > i * i ? a * 3 : a - i; a = a > 3 ? i : a * a; } return a; }", (VECTOR[0],), 249),
    ("floats", "double f() { x = 1.5; y = x; for (i = 0; i < 250; i++) { x = x * x + x * y; y = x * y + y * y; x = x - y * x; y = y / x + x; } return x; }", (), np.nan),
    ("three values", "int f(int a) { s = a; t = a; for (i = 0; i < 250; i++) { s = s > i ? s * 2 : s * s; t = t > s ? t * s : s - t; s = t > s ? t : s * 2; } return s; }", (np.int32(5),), 0),
]  # fmt: skip


@pytest.mark.parametrize("text, arguments, wanted", [each[1:] for each in IN_ORDER], ids=[each[0] for each in IN_ORDER])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_rounds_that_would_make_long_values_are_done_in_order(text, arguments, wanted, target):
    found = compiled(text, language="sac", target=target).f(*arguments)
    np.testing.assert_array_equal(found, wanted)


def wrapped(number):
    """The number as an `int`."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


CHAINS = {
    "choices": "if (s > {k}) {{ s = s + {k}; }} ",
    "choices of two": "if (s > {k}) {{ s = s + {k}; t = t + 1; }} else {{ t = t * s; }} ",
    "conditional expressions": "s = s > {k} ? s + {k} : s - t; ",
    "sums": "s = s + s - t; t = t + t + s; ",
}


@pytest.mark.parametrize("link", CHAINS.values(), ids=CHAINS)
def test_long_chains_of_scalars_are_no_limit(link):
    """What a link uses several times was written out until it had 200 parts: 70 choices were 3 times too much."""
    text = f"int f(int a) {{ s = a; t = a; {''.join(link.format(k=k) for k in range(70))} return s + t; }}"
    assert call_sac(text, np.int32(5)) == wrapped(evaluate(text, from_numpy(np.asarray(5)))[0].data[0])


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = [a]; for (i = 0; i < 200; i++) x = x ++ x; return sum(x); }", "its loops run 18 times"),
        (CHAINS["choices of two"].format(k=1) * 400 + "return s + t; }", "both ways of "),
        ("s = g(s) + g(s * 3) * g(s + 1); " * 120 + "return s; } int g(int x) { y = sum({ [i] -> x / i | [i] < [9] }); return y; }", "the bodies of "),
    ],
    ids=["loops", "choices", "calls"],
)  # fmt: skip
def test_what_is_too_large_says_which_construct_makes_it_so(text, words):
    with pytest.raises(Refused) as caught:
        call_sac("int f(int a) { s = a; t = a; " + text, np.int32(5), name="f")
    (message,) = caught.value.diagnostics
    assert message.code.number in ("TC503", "TC508")
    assert (message.help or "").startswith(words)


PRODUCTS = [
    "int[*] f(int n) { x = n*n+n+1; y = x*x+x; return { [i,j] -> i | [x,y] <= [i,j] < [2*x,2*y]; [i,j] -> j | [i,j] < [x*y,y*3] }; }",
    "int[*] f(int n) { return { [i] -> 1 | [n*n-n] <= [i] < [n*n]; [i] -> 2 | [n] <= [i] < [n*n+n]; [i] -> i | [i] < [9*n*n] }; }",
    "int[*] f(int n) { m = n+2; return { [i] -> i | [n*m*(n+m)] <= [i] < [n*m*n*m]; [i] -> 2 | [i] < [(n+m)*(n+m)*n*m*n] }; }",
]  # fmt: skip


@pytest.mark.parametrize("text", PRODUCTS)
def test_boxes_whose_ends_are_long_products_are_ordinary_programs(text):
    """The least and greatest of polynomials stood inside each other, once for each cut: TC508 for the first."""
    (want,) = evaluate(text, from_numpy(np.asarray(2)))
    got = np.asarray(compiled(text, language="sac", target="interpreter").f(I32(2)))
    assert got.shape == want.shape
    assert got.ravel().tolist() == want.data


def test_boxes_are_counted_with_numbers_where_there_is_no_argument():
    """Numbers were asked for, again and again: TC901."""
    parts = " ".join(f"([{k}, {k}] <= iv < [{k + 2}, {k + 3}]) : {k};" for k in range(25))
    found = call_sac(f"int[*] f() {{ return with {{ {parts} }} : genarray([40, 40], 99); }}")
    assert [found[0, 0], found[1, 3], found[26, 24], found[39, 39]] == [0, 1, 99, 99]


def test_known_elements_stay_known_however_often_they_are_combined():
    """They were stored, and then no shape (TC306)."""
    found = call_sac("int[*] f(int[.] a) { for (i = 0; i < 200; i++) a = a * a; return genarray(a + 1, 0); }", VECTOR)
    assert found.shape == (1, wrapped(pow(3, 1 << 200, 1 << 32)) + 1)


@pytest.mark.some(5)
@pytest.mark.parametrize(
    "link",
    ["if (r > {k}) {{ r = r * 3 - {k}; }} ", "if (x > {k}) {{ r = r + x * {k}; }} ", "r = r * r + {k}; "],
    ids=["of its own", "of the argument", "of sums"],
)
@pytest.mark.parametrize("kind", ["int[.]", "int[*]"])
def test_long_chains_in_an_element_function_are_no_limit(link, kind):
    """What later statements read was looked for at each of them, and 70 choices were too much work."""
    body = "".join(link.format(k=k) for k in range(160))
    text = f"int g(int x) {{ r = x; {body} return r; }} {kind} f({kind} a) {{ return {{ iv -> g(a[iv]) }}; }}"
    data = I32([[3, 1], [150, -2]]) if kind == "int[*]" else I32([3, 150])
    want = []
    for x in map(int, data.ravel()):
        r = x
        for k in range(160):
            if "if" not in link:
                r = wrapped(r * r + k)
            elif (r if "(r" in link else x) > k:
                r = wrapped(r * 3 - k if "(r" in link else r + x * k)
        want.append(r)
    assert np.asarray(compiled(text, language="sac", target="interpreter").f(data)).ravel().tolist() == want


def test_a_chain_of_comprehensions_is_no_limit():
    """The bounds of all earlier ones were filled in again at the end of each: 78 products were too much work."""
    text = "int[.,.] f(int[.,.] a) { b = a; for (i = 0; i < 120; i++) b = { [i,j] -> sum({ [k] -> a[i,k] * b[k,j] }) }; return b; }"
    call, _ = bind(text, I32([[1, 1], [0, 1]]))
    assert len(call.specialized.program.statements) <= 120
    assert call_sac(text, I32([[1, 1], [0, 1]])).tolist() == [[1, 121], [0, 1]]


CALLED_DEFS = {
    "an order and a border": (
        "def g(float(N) X) -> (Y) { Y(i) = (Y(i-1) else 0) + X(i) along i }",
        lambda x: np.cumsum(x),
    ),
    "a block": (
        "def g(float(N) X) -> (Y) { along t in 0:N { s = (Y(t-1) else 0) + X(t)  Y(t) = s + (r(t-1) else 0)  r(t) = 0 * s } }",
        lambda x: np.cumsum(x),
    ),
    "growing ranges and conditions": (
        "def g(float(N) X) -> (Y) { Y(i) +=! X(k) where i in 0:N, k in 0:i + 1, X(k) > 1 }",
        lambda x: np.cumsum(np.where(x > 1, x, 0)),
    ),
    "bins": (
        "def g(float(N) X) -> (float(5) H) { H(int32(X(i))) +=! 1.0f }",
        lambda x: np.bincount(x.astype(int), minlength=5),
    ),
}


@pytest.mark.parametrize("text, wanted", CALLED_DEFS.values(), ids=CALLED_DEFS)
@pytest.mark.parametrize("rank", [1, 2])
def test_a_function_calls_defs_with_all_that_statements_have(text, wanted, rank):
    """They ended with a `KeyError` or a `ValueError`: orders, blocks, conditions and left sides stayed those of the def."""
    body = "g(a) + g(a)" if rank == 1 else "{ [i] -> g(a[i]) + g(a[i]) | [i] < [shape(a)[0]] }"
    dots = ".,." if rank == 2 else "."
    defs = dict(compiled(text, target="interpreter"))
    f = compiled(
        f"float[{dots}] f(float[{dots}] a) {{ return {body}; }}", language="sac", target="interpreter", known=defs
    ).f
    x = np.array([[1, 2, 4, 1], [3, 1, 0, 2]], np.float32)
    x = x[0] if rank == 1 else x
    np.testing.assert_array_equal(f(x), 2 * np.apply_along_axis(wanted, -1, x))
