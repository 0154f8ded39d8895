"""What is said about a `%%sac` cell before any call."""

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import SourceText, render
from tests.sac_call import check, codes


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("int f(int a) { return b; }", ["TC201"]),
        ("int f(int[*] a) { return smu(a); }", ["TC201"]),
        ("int f(int a, int a) { return a; }", ["TC207"]),
        ("int f(int a) { return a; } int f(int b) { return b; }", ["TC207"]),
        ("int f(int[*] a) { return sum(a, a); }", ["TC213"]),
        ("int f(int[*] a) { return atan2(a); }", ["TC213"]),
        ("int f(int a) { return g(a, a); } int g(int a) { return a; }", ["TC213"]),
        ("int f(int a) { return g(a); } int g(int a) { return f(a); }", ["TC214", "TC214"]),
        ("int f(int a) { b = a; return a; }", ["TC234"]),
        ("int[.] f(int[.] v) { return { [i] -> take([i], v) | [i] < [3] }; }", ["TC252"]),
        ("int[*] f(int[*] v) { return { [i] -> drop([i], v) | [i] < [3] }; }", ["TC252"]),
        ("int[*] f(int n) { return { [i] -> { [k] -> k | [k] < [i] } | [i] < [n] }; }", ["TC252"]),
        ("int[*] f(int n) { return { [i] -> sum({ [k] -> k | [k] < [i] }) | [i] < [n] }; }", []),
        (
            "int[*] f(int n) { return { [i] -> g(i) | [i] < [n] }; } int[.] g(int n) { return genarray([n], 0); }",
            ["TC252"],
        ),
        ("int[.,.] f() { return [[1,2],[3]]; }", ["TC253"]),
        ("int[.,.] f() { return [1,2]; }", ["TC254"]),
        ("int[2] f() { return [1,2,3]; }", ["TC254"]),
        ("int f(int[.,.] m) { return sum(m[0,0,0]); }", ["TC202"]),
        ("int[.] f() { return { [i] -> i }; }", ["TC351"]),
        ("int[.] f(int[.] v) { return { [i] -> v[i] | [i] < . }; }", ["TC352"]),
        ("int f() { return with { (. <= iv < [3]) : iv[0]; } : fold(+, 0); }", ["TC352"]),
        ("int[.] f() { return { iv -> 1 | iv < [5]; iv -> 2 | [1] <= iv < [3]; iv -> 0 | iv < [9] }; }", ["TC354"]),
        ("int[.] f() { return { iv -> 1 | [2] <= iv < [5] }; }", ["TC355"]),
        ("int[.,.] f() { return { [i,j] -> 1 | [i,j] < [5] }; }", ["TC356"]),
        ("int[.] f() { return { [i] -> 1 | [i] < [9]; [j] -> 2 | [j] < [5] }; }", ["TC653"]),
        ("int[.] f() { return { [i] -> 1 | [i] < [-5] }; }", ["TC655"]),
        ("int[.] f() { return [1,2] + [1,2,3]; }", ["TC654"]),
        ("int[.] f(int[.,.] m) { return m ++ [1]; }", ["TC654"]),
        ("int[.] f() { return take([5], [1,2]); }", ["TC652"]),
        ("int f() { return [1,2][2]; }", ["TC652"]),
        ("int[*] f(int[.] v) { return { [i, .] -> v[i] }; }", ["TC251"]),
        ("int f(double x) { return x; }", ["TC206"]),
        ("float f(double x) { return x; }", ["TC206"]),
        ("int f(bool b) { return b && 1 ? 2 : 3; }", ["TC212"]),
        ("int f(int a) { return a ? 2 : 3; }", ["TC212"]),
        ("int[.] f(int[.] v, double x) { return { [i] -> v[x] | [i] < [3] }; }", ["TC212"]),
        ("int f() { return with { ([0] <= iv < [3]) : iv[0]; } : fold(-, 0); }", ["TC201"]),
        ("int[*] f(int[.] v) { return v[..., 0, ...]; }", ["TC151"]),
    ],
)
def test_messages(text, wanted):
    assert codes(text) == wanted


def test_all_mistakes_of_a_cell_in_one_go():
    text = """int[.] f(int[.] v) {
    a = unknown + 1;
    b = { [i] -> take([i], v) | [i] < [3] };
    c = { [..., i, ...] -> v | [i] < [2] };
    return a + b + c;
}
int g() { return [1,2][2]; }
"""
    _, diagnostics = check(text)
    assert [d.code.number for d in diagnostics] == ["TC201", "TC252", "TC151", "TC652"]
    assert all(text[d.span.start : d.span.end] for d in diagnostics)
    assert all(render([d], SourceText(text)) for d in diagnostics)


def test_two_wrong_variables_are_two_messages():
    assert codes("int[.] f() { a = [1,2] + [1]; b = take([3], [1]); return a ++ b; }") == ["TC654", "TC652"]


def test_the_help_names_function_and_index():
    _, (message,) = check("int[.] f(int[.] v) { return { [i] -> take([i], v) | [i] < [3] }; }")
    assert "`i`" in message.message
    assert "`take([i], v)`" in message.help


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("int[.] f(int[*] x) { return shape(x); }", {"x": "S"}),
        ("int[.] f(int[*] x) { return shape(shape(x)); }", {"x": "D"}),
        ("int f(int[*] x) { return 42; }", {"x": "N"}),
        ("int[*] f(int[*] x, int[*] v) { return shape(take(v, x)); }", {"x": "S", "v": "F"}),
        ("int f(int[*] x) { return dim(x + 1); }", {"x": "D"}),
        ("int[*] f(int[*] x) { return { iv -> x[iv] + 1 }; }", {"x": "F"}),
        ("int[*] f(int[*] x, int[*] y) { return shape({ iv -> x[iv] * sum(y) }); }", {"x": "S", "y": "N"}),
        ("int[*] f(int[*] x) { y = x + 1; z = shape(y); return z; }", {"x": "S"}),
        (
            "int[*] f(int[*] x, int y) { return g(y, x); } int[*] g(int a, int[*] b) { return shape(b); }",
            {"x": "S", "y": "N"},
        ),
        ("int[*] f(int[.] s, int[*] x) { return shape(genarray(s, x)); }", {"s": "F", "x": "S"}),
    ],
)
def test_demands(text, wanted):
    checked, _ = check(text)
    assert dict(checked.functions["f"][0].demands) == wanted


def test_a_program_exists_at_definition_where_ranks_are_declared():
    checked, diagnostics = check(
        "float[.,.] mm(float[.,.] A, float[.,.] B) { return { [i,j] -> sum({ [k] -> A[i,k] * B[k,j] }) }; }"
    )
    assert not diagnostics
    (mm,) = checked.functions["mm"]
    assert not mm.rank_is_open
    assert mm.program.sizes == ("A_0", "A_1", "B_0", "B_1")
    assert mm.signature == "float[.,.] mm(float[.,.] A, float[.,.] B)"


def test_an_open_rank_waits_for_the_call():
    checked, _ = check("float[*] f(float[*] A) { return { iv -> A[iv] }; }")
    assert checked.functions["f"][0].rank_is_open
    assert checked.functions["f"][0].program is None


def test_messages_about_calls_in_one_cell_point_into_the_text():
    text = "int[*] f(int[*] a) { return g(a, 1); } int[+] g(int[+] a, int b) { return a + b; } int[.] h(int n) { return f(n); }"
    _, diagnostics = check(text)
    assert [d.code.number for d in diagnostics] == ["TC651"]
    assert text[diagnostics[0].span.start : diagnostics[0].span.end] == "g(a, 1)"


def test_the_branches_of_an_if_are_no_operands():
    text = "int[.] f(int[.] a, int k) { if (k > 2) { b = take([k], a); } else { b = a; } return b + 1; }"
    f = tc.compile(text, language="sac").f
    with pytest.raises(
        tc.CallError, match="the branches differ in the extent of axis 0: one is 3, the other is 6"
    ) as said:
        f(np.arange(6, dtype=np.int32), 3)
    assert "both branches need one shape" in (said.value.diagnostic.help or "")


@pytest.mark.parametrize("value", ["take([k], a)", "take([k], a) + 1", "drop([k], a) + take([k], a)"])
def test_what_an_operation_demands_is_not_said_of_its_reads_too(value):
    # it was, of `a[i0 + (a_0 + min(-k, k) if k < 0 else 0)]`, at the parameter
    assert tc.analyze(f"int[.] f(int[.] a, int k) {{ return {value}; }}", language="sac").diagnostics == ()


@pytest.mark.parametrize("rounds", [3, 40, 200])
def test_rounds_that_are_too_much_work_go_in_order(rounds):
    """Few are written out; many of a large body are statements in order, as those of an unknown number are."""
    turned = " + ".join(f"rotate([{k % 3 - 1}, {k // 3 - 1}], X)" for k in range(8))
    text = f"double[.,.] f(double[.,.] X) {{ for (t = 0; t < {rounds}; t++) {{ X = 0.125 * ({turned}); }} return X; }}"
    f = tc.compile(text, language="sac", target="interpreter").f
    assert len(f.program.statements) == (rounds if rounds < 16 else 3)
    if rounds < 100:
        X = wanted = np.random.default_rng(0).random((2, 3))
        for _ in range(rounds):
            wanted = sum(np.roll(wanted, (k % 3 - 1, k // 3 - 1), (0, 1)) for k in range(8)) / 8
        np.testing.assert_allclose(f(X), wanted)


@pytest.mark.parametrize("rounds", [2, 8, 15])
def test_nested_rounds_that_are_too_much_work_go_in_order(rounds):
    """Each loop by itself has few rounds: 8 x 8 took 14 seconds to compile, and 15 x 15 were refused (TC503, TC508)."""
    text = (
        "double[.,.] f(double[.,.] a) {{ for (i = 0; i < {n}; i++) {{ for (j = 0; j < {n}; j++) {{ "
        "if (a[i, j] > 0.5) {{ a = a * 0.5; }} else {{ a = rotate(0, 1, a) + 0.01; }} }} }} return a; }}"
    )
    f = tc.compile(text.format(n=rounds), language="sac", target="interpreter").f
    assert len(f.program.statements) <= 20
    a = wanted = np.random.default_rng(0).random((rounds, rounds))
    for place in np.ndindex(a.shape):
        wanted = wanted * 0.5 if wanted[place] > 0.5 else np.roll(wanted, 1, 0) + 0.01
    np.testing.assert_allclose(f(a), wanted)
