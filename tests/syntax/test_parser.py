"""Text -> tree: what a correct text means, recovery after a mistake, and any text at all."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tc_jupyter.diagnostics import SourceText, Span, codes, render
from tc_jupyter.syntax import parse_tc, tree
from tc_jupyter.syntax.parser import MAX_DEPTH, MOST_MESSAGES
from tc_jupyter.syntax.recovery import MAX_BRACKETS
from tests.strategies import drawn


def parse(text: str) -> tree.Parsed:
    return parse_tc(SourceText(text))


def found(text: str) -> list[str]:
    return [item.code.number for item in parse(text).diagnostics]


def body(text: str, signature: str = "float(N) X") -> list[str]:
    return found(f"def f({signature}) -> (Y) {{ {text} }}")


def statement(text: str) -> tree.TcStatement:
    parsed = parse(f"def f(float(N) X) -> (Y) {{ {text} }}")
    assert not parsed.diagnostics
    (only,) = parsed.unit.defs[0].statements
    return only


def test_the_parts_of_a_def():
    (item,) = parse("def f(float(N,4) X, int s) -> (double(N) Y, z) { Y(i) = X(i,0) z = s }").unit.defs
    assert item.name == tree.Name("f")
    assert item.params[0] == tree.Param(tree.TypeName("float", (tree.Name("N"), tree.Number("4", 4))), tree.Name("X"))
    assert item.params[1] == tree.Param(tree.TypeName("int"), tree.Name("s"))
    assert item.results == (
        tree.Result(tree.Name("Y"), tree.TypeName("double", (tree.Name("N"),))),
        tree.Result(tree.Name("z")),
    )
    assert [statement.operator for statement in item.statements] == ["=", "="]
    assert not item.broken


def test_the_parts_of_a_statement():
    node = statement("Y(i) min=! a ? X(i) : -1 <=> lib(X) where i in 0:N, k = [0, 3[, v = X.0, exists X(k)")
    assert isinstance(node, tree.Comprehension)
    assert node.operator == "min=!"
    assert node.matched == tree.Apply(tree.Name("lib"), (tree.Name("X"),))
    assert isinstance(node.value, tree.Conditional)
    assert [type(clause) for clause in node.clauses] == [tree.Where, tree.Where, tree.Let, tree.Exists]
    assert node.clauses[2] == tree.Let(tree.Name("v"), tree.Extent(tree.Name("X"), 0))


def test_precedence_and_associativity():
    node = statement("Y = a - b - c * -d % e")
    assert isinstance(node, tree.Comprehension)
    a, b, c, d, e = (tree.Name(name) for name in "abcde")
    product = tree.Binary("%", tree.Binary("*", c, tree.Unary("-", d)), e)
    assert node.value == tree.Binary("-", tree.Binary("-", a, b), product)


def test_a_choice_is_right_associative():
    node = statement("Y = a ? b : c ? d : e")
    assert isinstance(node, tree.Comprehension)
    assert isinstance(node.value, tree.Conditional)
    assert isinstance(node.value.otherwise, tree.Conditional)


def test_a_call_with_several_targets():
    assert statement("P, Q = split(X, Y)") == tree.CallStatement(
        (tree.Name("P"), tree.Name("Q")), tree.Name("split"), (tree.Name("X"), tree.Name("Y"))
    )


def test_parentheses_on_the_left_are_kept_apart_from_none():
    assert statement("Y() = 1").indices == ()
    assert statement("Y = 1").indices is None


def test_spans_are_the_written_text():
    text = "def f(float(N) X) -> (Y) { Y(i) = (X(i) + 1) * 2 }"
    (item,) = parse(text).unit.defs
    (node,) = item.statements
    source = SourceText(text)
    assert source.slice(node.span) == "Y(i) = (X(i) + 1) * 2"
    assert source.slice(node.value.left.span) == "(X(i) + 1)"
    assert source.slice(node.value.op_span) == "*"
    assert source.slice(node.operator_span) == "="
    assert source.slice(item.signature_span) == "def f(float(N) X) -> (Y) {"
    assert source.slice(item.span) == text
    assert source.slice(item.params[0].span) == "float(N) X"


def test_spans_count_code_points():
    text = "# 😀😀\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }"
    (item,) = parse(text).unit.defs
    assert text[item.name.span.start : item.name.span.end] == "f"


@pytest.mark.parametrize(
    "texts",
    [
        ("Y(i) = X(i)", "Z(i) = Y(i)"),
        ("Y = 1", "Z = 2", "W(i) = X(i)"),
        ("Y(i) = X(i) where k = [0, 2[", "Z(i) = X(i)"),
        ("Y(i) = X(i) where v = a, i in 0:N", "P, Q = split(X)", "Z min=! X(i)"),
        ("Y(i) = X.0", "Z(i) = true", "A = 3", "B, C = g(X)"),
        ("Y(i) = -\n X(i)\n + 3\n * 2", "Z(i) = 1"),
    ],
)
@pytest.mark.parametrize("between", [" ", "\n", "  # comment\n"])
def test_statements_are_told_apart_without_separators(texts, between):
    parsed = parse("def f(float(N) X) -> (Y) {" + between.join(texts) + "\n}")
    assert not parsed.diagnostics
    assert len(parsed.unit.defs[0].statements) == len(texts)


@pytest.mark.parametrize(
    "broken",
    ["Y(i) = X(i", "Y(i = X(i)", "Y(i) = X(i))", "Y(i) = 2 X(i)", "Y(i) X(i)", "Y(i) = ", "Y(i) = * 3", "Y(i) += = 3", "Y[i] = 3",
     "where(i) = 3", "Y(i) = X(i) where", "Y(i) = X(i) where k in", "Y(i) = X(i) where k in 0", "Y(i) = ^", "Y(i) = a b c d", "= 3"],
)  # fmt: skip
def test_a_broken_statement_leaves_the_others(broken):
    parsed = parse(
        f"def f(float(N) X) -> (Z) {{\n  A(i) = X(i)\n  {broken}\n  B(i) = X(i)\n  Z(i) = B(i)\n}}\ndef g(float(N) X) -> (Z) {{ Z(i) = X(i) }}"
    )
    first, second = parsed.unit.defs
    assert first.broken
    assert not second.broken
    names = [item.target.name for item in first.statements if isinstance(item, tree.Comprehension)]
    assert names[-2:] == ["B", "Z"]
    assert 1 <= len(parsed.diagnostics) <= 2
    assert all(item.is_error for item in parsed.diagnostics)


def test_a_broken_statement_keeps_what_it_would_define():
    (item,) = parse("def f(float(N) X) -> (Y) { T(i) = X(i) X(i) }").unit.defs
    (broken,) = item.statements
    assert isinstance(broken, tree.Broken)
    assert broken.targets == ("T",)
    assert broken.names == {"T", "i", "X"}
    assert broken.text == "T(i) = X(i) X(i)"


@pytest.mark.parametrize(
    ("text", "code", "fixed"),
    [
        ("Y(i) = X(i);", "TC103", "Y(i) = X(i)"),
        ("Y(i) = b ≤ c", "TC103", "Y(i) = b <= c"),
        ("Y(i) = b // c", "TC104", "Y(i) = b / c"),
        ("Y(i) = b // a long comment", "TC104", "Y(i) = b # a long comment"),
        ("Y(i) = b /* c */", "TC104", "Y(i) = b # c"),
        ("Y(i) = b =< c", "TC107", "Y(i) = b <= c"),
        ("Y(i) = b => c", "TC107", "Y(i) = b >= c"),
        ("Y(i) = b and c", "TC107", "Y(i) = b && c"),
        ("Y(i) = b or c", "TC107", "Y(i) = b || c"),
        ("Y(i) = not c", "TC107", "Y(i) = !c"),
        ("Y(i) = b ** 2", "TC107", "Y(i) = b ^ 2"),
        ("Y(i) = 017", "TC102", "Y(i) = 17"),
        ("Y(i) = 1_000", "TC102", "Y(i) = 1000"),
        ("Y(i) = 0 < b < 2", "TC106", "Y(i) = 0 < b && b < 2"),
        ("Y(i) = 0 < b < c <= 2", "TC106", "Y(i) = 0 < b && b < c && c <= 2"),
        ("Y(i) = a == b == c", "TC106", "Y(i) = a == b && b == c"),
        ("Y(i) = X(i + k) where k = [0, 2]", "TC105", "Y(i) = X(i + k) where k in 0:2+1"),
        ("Y(i) = X(i + k) where k = [0, 2)", "TC105", "Y(i) = X(i + k) where k in 0:2"),
        ("Y(i) = X(i + k) where k in [0, 2]", "TC105", "Y(i) = X(i + k) where k in 0:2+1"),
        ("Y(i) = X(i + k) where k in 0..2", "TC105", "Y(i) = X(i + k) where k in 0:2"),
        ("Y(i) = 2 b", "TC101", "Y(i) = 2 * b"),
        ("Y(i) = b where k in 0:2 i in 0:3", "TC101", "Y(i) = b where k in 0:2, i in 0:3"),
        ("Y(i) = X[i]", "TC101", "Y(i) = X(i)"),
        ("Y[i] +=! X[i][ j ] where k = [0, N[", "TC101", "Y(i) +=! X(i,  j ) where k = [0, N["),
        ("Y +!= X(i)", "TC101", "Y +=! X(i)"),
        ("Y(i) = np.exp(X(i))", "TC101", "Y(i) = exp(X(i))"),
        ("Y(i) = X[I[i], 0] + X(I[0])", "TC101", "Y(i) = X(I(i), 0) + X(I(0))"),
        ("Y(i) = X(i) = b", "TC101", "Y(i) = X(i) == b"),
        ("Y(i) = a + b)", "TC101", "Y(i) = a + b"),
    ],
)
def test_a_fix_repairs_the_mistake(text, code, fixed):
    before = "def f(float(N) X) -> (Y) {\n"
    source = SourceText(before + text + "\n}")
    (item,) = parse_tc(source).diagnostics
    assert item.code.number == code
    assert item.fix is not None
    result = source.text
    for edit in sorted(item.fix.edits, key=lambda edit: edit.span.start, reverse=True):
        result = result[: edit.span.start] + edit.text + result[edit.span.end :]
    assert result.removeprefix(before).removesuffix("\n}").strip() == fixed
    assert not parse_tc(SourceText(result)).diagnostics


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("float[N] X", "float(N) X"),
        ("float[N,3] X", "float(N, 3) X"),
        ("half [ N ][M] X", "half(N, M) X"),
        ("int8 X[N]", "int8(N) X"),
        ("float X[N][M]", "float(N, M) X"),
        ("float X(N, M)", "float(N, M) X"),
    ],
)
def test_sizes_where_other_languages_have_them(text, fixed):
    """What comes after sees the parameter that was meant."""
    whole = "def f({}, float Y) -> (Z) {{ Z = X }}".format
    found = parse_tc(SourceText(whole(text)))
    (item,) = found.diagnostics
    assert item.fix is not None
    (edit,) = item.fix.edits
    assert whole(text)[: edit.span.start] + edit.text + whole(text)[edit.span.end :] == whole(fixed)
    right = parse_tc(SourceText(whole(fixed)))
    assert not right.diagnostics
    assert found.unit.defs[0].params == right.unit.defs[0].params


def test_certain_repairs_keep_the_statement():
    (item,) = parse("def f(float(N) X) -> (Y) { Y(i) = X(i) =< 1 and true; }").unit.defs
    assert isinstance(item.statements[0], tree.Comprehension)
    assert item.broken


def test_words_of_python_are_names_where_a_name_is_meant():
    assert body("Y(and) = X(and) + not_ + or_") == []


@pytest.mark.parametrize("text", ["", " \n", "# only a comment", "\ufeff"])
def test_an_empty_cell(text):
    assert codes.NO_DEF.number in found(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def", 1),
        ("def f", 1),
        ("def f(", 1),
        ("def f()", 1),
        ("def f() ->", 1),
        ("def f() -> (", 1),
        ("def f() -> (Y)", 1),
        ("def f() -> (Y) {", 1),
    ],
)
def test_an_unfinished_def_gives_one_message(text, count):
    assert len(found(text)) == count


def test_a_missing_brace_does_not_swallow_the_next_def():
    parsed = parse("def f(float(N) X) -> (Y) { Y(i) = X(i)\ndef g(float(N) X) -> (Y) { Y(i) = X(i) }")
    assert [item.name.name for item in parsed.unit.defs] == ["f", "g"]
    assert [len(item.statements) for item in parsed.unit.defs] == [1, 1]
    assert len(parsed.diagnostics) == 1


def test_allow_comments_belong_to_their_statement_or_def():
    text = "def f(float(N) X) -> (Y) {  # allow TC321, TC322\n  Y(i) = X(i)  # allow TC323\n}\n# allow TC324"
    parsed = parse(text)
    (item,) = parsed.unit.defs
    assert parsed.allow == (("TC321", item.span), ("TC322", item.span), ("TC323", item.statements[0].span))
    assert [text[span.start : span.end] for span in parsed.comments] == [
        "# allow TC321, TC322",
        "# allow TC323",
        "# allow TC324",
    ]


def test_brackets_up_to_the_limit():
    assert body(f"Y(i) = {'(' * MAX_BRACKETS}X(i{')' * MAX_BRACKETS}")  # one more: those of X(
    assert not body(f"Y(i) = {'(' * (MAX_BRACKETS - 1)}X(i){')' * (MAX_BRACKETS - 1)}")


def test_operators_up_to_the_limit():
    assert not body("Y(i) = " + " + ".join(["a"] * MAX_DEPTH))
    assert body("Y(i) = " + " + ".join(["a"] * (MAX_DEPTH + 1))) == ["TC503"]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "text",
    ["(" * 10_000 + "X(i)" + ")" * 10_000, "a ? b : " * 10_000 + "c", "-" * 10_000 + "a", "!" * 10_000 + "a", "X(" * 10_000, "a+" * 10_000 + "a",
     "max(1," * 10_000, "a<" * 10_000 + "a", "\0" * 10_000, "😀" * 10_000, "9" * 10_000, "0x1p" + "9" * 1000, "1e" + "9" * 1000],
)  # fmt: skip
def test_huge_expressions_give_messages(text):
    source = SourceText(f"def f(float(N) X) -> (Y) {{ Y(i) = {text} }}\ndef g(float(N) X) -> (Y) {{ Y(i) = X(i) }}")
    parsed = parse_tc(source)
    assert len(parsed.diagnostics) <= 3
    assert [item.broken for item in parsed.unit.defs][-1] is False
    assert len(render(parsed.diagnostics, source)) < 5000


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "piece",
    [
        "(",
        ")",
        "{",
        "}",
        "def ",
        "def f(){",
        "x=(",
        "a ",
        ";",
        '"',
        "/*",
        "//",
        "\n",
        "where ",
        ",",
        "min=!",
        "\0",
        "[",
        "and ",
    ],
)
def test_a_repeated_piece_gives_a_bounded_number_of_messages(piece):
    source = SourceText(piece * 20_000)
    parsed = parse_tc(source)
    assert 1 <= len(parsed.diagnostics) <= MOST_MESSAGES + 1
    assert [item.span.start for item in parsed.diagnostics] == sorted(item.span.start for item in parsed.diagnostics)


WORDS = st.sampled_from(
    [
        "def",
        "f",
        "g",
        "(",
        ")",
        "->",
        "(",
        "Y",
        ")",
        "{",
        "}",
        "=",
        "+=",
        "+=!",
        "min=!",
        "=",
        "X",
        "Y",
        "i",
        "k",
        "N",
        "+",
        "-",
        "*",
        "/",
        "%",
        "?",
        ":",
        ",",
        "[",
        "]",
        "[",
        "<",
        "<=",
        "==",
        "!=",
        "&&",
        "||",
        "!",
        ".",
        "..",
        "X.0",
        "0",
        "3",
        "1.5",
        "true",
        "inf",
        "where",
        "in",
        "exists",
        "float",
        "int32",
        "min",
        "max",
        "and",
        "not",
        "//",
        "/*",
        "#",
        ";",
        "^",
        "017",
        "3i",
        "\n",
        "\n",
        "\t",
    ]
)


@drawn(75, 300, st.lists(WORDS, max_size=60))
def test_any_words_give_a_tree_and_messages_in_order(words):
    text = " ".join(words)
    source = SourceText(text)
    parsed = parse_tc(source)
    assert parsed.diagnostics or parsed.unit.defs
    starts = [item.span.start for item in parsed.diagnostics]
    assert starts == sorted(starts)
    assert all(0 <= item.span.start <= item.span.end <= len(text) for item in parsed.diagnostics)
    render(parsed.diagnostics, source)


@drawn(50, 200, st.text(max_size=80))
def test_any_text_gives_messages(text):
    source = SourceText("def f(float(N) X) -> (Y) { Y(i) = " + text + " }")
    parsed = parse_tc(source)
    render(parsed.diagnostics, source)
    assert parsed.unit.span == Span(0, len(source.text))


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) X) -> (Y) { for i = 1:N\n if X[i",
        "def f(float(N) x) ->) ^= a }",
        "__global__ void f(int i) { threadIdx.x }",
    ],
)
def test_a_text_that_ends_early_has_messages(text):
    assert parse_tc(SourceText(text)).diagnostics
