"""Text of a `%%sac` cell -> tree: forms, messages, recovery, canonical text."""

import time

import pytest
from hypothesis import strategies as st

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax import parse_sac, sac_to_text
from tc_jupyter.syntax.sac_tree import Dot, SacType, Selection, SetExpr, TripleDot, WithLoop
from tests.strategies import drawn


def parse(text):
    return parse_sac(SourceText(text))


def codes(text):
    return [d.code.number for d in parse(text).diagnostics]


def result(expression):
    parsed = parse(f"int[*] f(int[*] A) {{ return {expression}; }}")
    assert not parsed.diagnostics, parsed.diagnostics
    return parsed.unit.functions[0].results[0]


@pytest.mark.parametrize(
    "text, shape, rank",
    [
        ("float", (), 0),
        ("float[3,4]", (3, 4), 2),
        ("double[.,.]", (None, None), 2),
        ("float[+]", "+", None),
        ("int[*]", "*", None),
        ("long[.,3]", (None, 3), 2),
    ],
)
def test_types(text, shape, rank):
    parsed = parse(f"{text} f({text} a) {{ return a; }}")
    assert not parsed.diagnostics
    type_ = parsed.unit.functions[0].params[0].type
    assert type_ == SacType(text.split("[")[0], shape)
    assert type_.rank == rank


@pytest.mark.parametrize("shape", ["*,.", "", "3,*", "-1", "1.5", "+,+", "x"])
def test_malformed_types(shape):
    assert codes(f"int f(int[{shape}] a) {{ return 1; }}") == ["TC154"]


def test_types_that_do_not_exist():
    assert codes("flaot f(byte a) { return 1; }") == ["TC154", "TC154"]


def test_precedence():
    assert sac_to_text(result("take([1], A) ++ A + 1 ++ A")) == "take([1], A) ++ A + 1 ++ A"
    assert sac_to_text(result("(A ++ A) + 1")) == "(A ++ A) + 1"
    assert (
        sac_to_text(result("-A[1] * 2 + 3 < 4 && !(1 == 2) ? 1 : 2 + 3"))
        == "-A[1] * 2 + 3 < 4 && !(1 == 2) ? 1 : 2 + 3"
    )
    assert sac_to_text(result("1 - (2 - 3) - 4")) == "1 - (2 - 3) - 4"


@pytest.mark.parametrize(
    "generator",
    ["", " | [0] <= [i] < [5]", " | [i] < [5]", " | [5] <= [i]", " | . <= [i] < .", " | [i] < 5", " | i < 5"],
)
def test_generators(generator):
    node = result(f"{{ [i] -> A[i]{generator}; iv -> A[iv] }}")
    assert isinstance(node, SetExpr)
    assert (node.partitions[0].generator is None) == (not generator)


def test_patterns_and_dots():
    node = result("{ [., i, ..., j, .] -> A | [i,j] < [2,2] }")
    assert isinstance(node, SetExpr)
    assert [type(item).__name__ for item in node.partitions[0].pattern.items] == [
        "Dot",
        "Name",
        "TripleDot",
        "Name",
        "Dot",
    ]
    assert isinstance(result("{ [. . ., i] -> A | [i] < [2] }").partitions[0].pattern.items[0], TripleDot)
    selection = result("A[., 1, ...]")
    assert isinstance(selection, Selection)
    assert isinstance(selection.indices[0], Dot)
    assert isinstance(selection.indices[2], TripleDot)


def test_with_loops():
    node = result("with { ([0] < iv <= [5]) { x = iv[0]; } : x + 1; } : genarray([8], 42)")
    assert isinstance(node, WithLoop)
    assert (node.generators[0].generator.lower_relation, node.generators[0].generator.upper_relation) == ("<", "<=")
    assert result("with { ([0] <= iv < [5]) : 1 } : fold(+, 0)").function.name == "+"
    assert result("with { } : genarray([3])").generators == ()


def test_functions_named_like_operators_and_overloads():
    parsed = parse("int[+] +(int[+] A, int B) { return A; } int -(int A) { return A; }")
    assert not parsed.diagnostics
    assert [f.name.name for f in parsed.unit.functions] == ["+", "-"]


def test_several_results_and_comments():
    parsed = parse("// allow TC355\nint, int f(int a) { // x\n /* y\n z */ return (a, a); }")
    assert not parsed.diagnostics
    assert len(parsed.unit.functions[0].results) == 2
    assert len(parsed.comments) == 3


def test_allow_belongs_to_the_line():
    parsed = parse("int f(int a) { // allow TC234\n  b = a; // allow TC355\n  return a; }")
    function = parsed.unit.functions[0]
    assert parsed.allow == (("TC234", function.span), ("TC355", function.body[0].span))


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", ["TC111"]),
        ("int f(int a) { b = a }", ["TC101"]),
        ("int f(int a) { b = a; }", ["TC155"]),
        ("int, int f(int a) { return a; }", ["TC155"]),
        ("int f(int[*] A) { return { [..., i, ...] -> A | [i] < [2] }; }", ["TC151"]),
        ("int f(int[*] A) { return { [i] -> A[i] | [1] < [i] < [5] }; }", ["TC152"]),
        ("int f(int[*] A) { return { [i] -> A[i] | [1] <= [i] <= [5] }; }", ["TC152"]),
        ("int f(int[*] A) { return { [i] -> A[i] | [i] <= [5] }; }", ["TC152"]),
        ("int f(int[*] A) { return { [i] -> A[i] | [i] > [5] }; }", ["TC152"]),
        ("int f(int[*] A) { return { [i,.,j] -> A | [j,i] < [5,5] }; }", ["TC153"]),
        ("int f(int[*] A) { return { iv -> A[iv] | [i] < [5] }; }", ["TC153"]),
        ("int f(int[*] A) { return { [i,i] -> A[i] }; }", ["TC207"]),
        ("int f(int A) { return A && A and A; }", ["TC107"]),
        ("bool f(bool a) { return (a == a) == a; }", []),
        ("bool f(bool a) { return a == a == a; }", ["TC106"]),
        ("bool f(bool a) { return !(return(a) == a); }", ["TC108"]),
        ("int[*] f() { return with { ([0] <= iv < [1]) : 1 ([1] <= iv < [2]) : 2; } : genarray([2]); }", ["TC101"]),
        ("int f(int A) { return 017 + 3j + 1.5x; }", ["TC102", "TC109", "TC102"]),
        ("int f(int A) { return 1 @ 2; }", ["TC103"]),
        ("int f(int A) { return A < 1 < 2; }", ["TC106"]),
        ("int f(int return) { return 1; }", ["TC108"]),
        ("int f(int A) { if (A) return 1; }", ["TC155"]),
        ("int f(int A) { int b; return 1; }", ["TC101"]),
        ("int f(int A) { A[0] = 1; return A; }", ["TC101"]),
        ("int f(int A) { /* open", ["TC101", "TC101"]),
        ("int f(int A) { return return (A); }", ["TC101"]),
        ("int f(int[.] A) { return A[0,]; }", ["TC101"]),
        ("int f(int[.] A) { return A[]; }", ["TC101"]),
        ("int[.] f(int A) { return [A, 1,]; }", ["TC101"]),
        ("int f(int A) { return max(A, 1,); }", ["TC101"]),
        ("int f(int[*] A) { return { [i,] -> A[i] }; }", ["TC101"]),
        ("int f(int[.,] A) { return A; }", ["TC154"]),
        ("def f(float(N) A) -> (B) { B(i) = A(i) }", ["TC111"]),
    ],
)
def test_messages(text, wanted):
    assert codes(text) == wanted


def test_all_mistakes_in_one_go():
    text = """int f(int[*,.] a) {
    x = { [..., i, ...] -> a | [i] < [2] };
    y = (1 + ;
    return x +* y;
}
int g(int b) { c = b +; return c; }
int h(int b) { return b; }
"""
    parsed = parse(text)
    assert [d.code.number for d in parsed.diagnostics] == ["TC154", "TC151", "TC101", "TC101", "TC101"]
    assert [f.name.name for f in parsed.unit.functions] == ["f", "g", "h"]
    assert [f.broken for f in parsed.unit.functions] == [True, True, False]
    assert all(d.span.end <= len(text) for d in parsed.diagnostics)


def test_a_fix_shifts_the_bound():
    text = "int f(int[*] A) { return { [i] -> A[i] | [i] <= [5] }; }"
    (message,) = parse(text).diagnostics
    (edit,) = message.fix.edits
    fixed = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert "[i] < [6]" in fixed
    assert not parse(fixed).diagnostics


def test_a_missing_brace_does_not_swallow_the_next_function():
    parsed = parse("int f(int a) {\n  return a;\nint g(int a) {\n  return a;\n}")
    assert [f.name.name for f in parsed.unit.functions] == ["f", "g"]
    assert codes("int f(int a) {\n  return a;\nint g(int a) {\n  return a;\n}") == ["TC101"]


@pytest.mark.parametrize(
    "text", ["(" * 5000, "[" * 5000 + "]" * 5000, "-" * 5000 + "1", "1" + "+1" * 5000, "{ i -> " * 3000, "1 ? " * 3000]
)
def test_deep_texts_are_refused_in_bounded_time(text):
    start = time.process_time()
    assert codes(f"int f(int a) {{ return {text}; }}")
    assert time.process_time() - start < 5


@drawn(75, 300, st.text(alphabet="int f(a){}[]<=|;->.,+*with:gnary0123456789 \n/", max_size=80))
def test_any_text_gives_messages_and_no_exception(text):
    parsed = parse(text)
    assert parsed.diagnostics or parsed.unit.functions


CORPUS = [
    "float[*] inc(float[*] A) {\n    return { iv -> A[iv] + 1 };\n}",
    "int[.] f(int[.] v) {\n    w = with { ([1] <= [i] < shape(v) - 1) : v[i] + 1; } : modarray(v);\n    return take([1], w) ++ -w;\n}",
    "int[*] g(int[*] a) {\n    return { [i, ., ...] -> a[i, ., 1] | . <= [i] < .; iv -> (1 < 2 ? a : a)[iv] | iv < shape(a) ++ [1] };\n}",
    "int, double[+] h(int n, double[+] x) {\n    return n, with { ([0] < iv <= [5]) { y = iv; } : y[0]; } : fold(+, 0);\n}",
    "bool !(bool b) {\n    return b == true || !(b && false);\n}",
]


@pytest.mark.parametrize("text", CORPUS)
def test_printing_and_parsing_are_inverse(text):
    unit = parse(text).unit
    assert sac_to_text(unit) == text
    assert parse(sac_to_text(unit)).unit == unit


LOOPS = """double[.,.] f(double[.,.] a, double[.,.] b) {{
    {}
    return c;
}}"""


@pytest.mark.parametrize(
    "loops, fixed",
    [
        (
            "for (i = 0; i < 2; i++) for (j = 0; j < 3; j++) { c[i][j] = 1; for (k = 0; k < 4; k++) { c[i][j] += a[i][k]; } }",
            "c = { [i, j] -> 1 + sum({ [k] -> a[i][k] | [k] < [4] }) | [i, j] < [2, 3] };",
        ),
        ("for (i = 0; i < 2; i++) { for (k = 0; k < 4; k++) { c[i, k] = a[i, k]; } c[i, 0] = 0; }", None),
        ("for (i = 0; i < 2; i++) { c[i, i] = 1; }", None),
        ("c = a; for (i = 0; i < 2; i++) { for (j = 0; j < 2; j++) { c[i, j] = c[j, i]; } }", None),
        ("c = a; for (i = 0; i < 2; i++) { for (j = i; j < 2; j++) { c[i, j] = 1; } }", None),
        ("c = a; for (i = 0; i < 2; i++) { c[i, 0] = 1; n = i; }", None),
        ("for (i = 0; i < 2; i++) { for (j = 0; j < 2; j++) { if (a[i, j] > 0.0) c[i, j] = 1; } }", None),
    ],
)
def test_a_loop_that_writes_elements_is_replaced_only_where_they_can_be_given_at_once(loops, fixed):
    text = LOOPS.format(loops)
    fixes = [d.fix for d in parse(text).diagnostics if d.fix and d.fix.edits[0].span.start == text.index("for")]
    assert [fix.edits[0].text for fix in fixes] == ([] if fixed is None else [fixed])


@pytest.mark.parametrize("text", ["double[.] f(double[.] x) { for (", "int f(int a) { ref (a > 0"])
def test_a_text_that_ends_early_has_messages(text):
    assert parse(text).diagnostics
