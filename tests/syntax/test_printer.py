"""Canonical text: the text of a tree parses to the tree again."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax import expression_text, parse_tc, to_text, tree
from tests.strategies import drawn


def parse(text: str) -> tree.Unit:
    parsed = parse_tc(SourceText(text))
    assert not parsed.diagnostics, parsed.diagnostics
    return parsed.unit


NAMES = st.sampled_from(["a", "b", "i", "N", "X"]).map(tree.Name)
NUMBERS = st.sampled_from([("7", 7), ("0x1F", 31), ("7.5", 7.5), (".5", 0.5), ("inf", float("inf"))]).map(
    lambda pair: tree.Number(*pair)
)
LEAVES = st.one_of(NAMES, NUMBERS, st.builds(tree.Extent, NAMES, st.integers(0, 3)))
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"])


def grow(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.builds(tree.Binary, OPERATORS, inner, inner),
        st.builds(tree.Unary, st.sampled_from("-!"), inner),
        st.builds(tree.Conditional, inner, inner, inner),
        st.builds(
            tree.Apply,
            st.sampled_from(["X", "f", "min", "float"]).map(tree.Name),
            st.lists(inner, max_size=3).map(tuple),
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, grow, max_leaves=20)
CLAUSES = st.one_of(
    st.builds(tree.Where, NAMES, EXPRESSIONS, EXPRESSIONS),
    st.builds(tree.Let, NAMES, EXPRESSIONS),
    st.builds(tree.Exists, EXPRESSIONS),
)
STATEMENTS = st.one_of(
    st.builds(
        tree.Comprehension,
        NAMES,
        st.one_of(st.none(), st.lists(EXPRESSIONS, max_size=2).map(tuple)),
        st.sampled_from(["=", "+=", "+=!", "*=!", "min=", "max=!"]),
        EXPRESSIONS,
        st.lists(CLAUSES, max_size=2).map(tuple),
    ),
    st.builds(
        tree.CallStatement,
        st.lists(NAMES, min_size=2, max_size=3).map(tuple),
        NAMES,
        st.lists(EXPRESSIONS, max_size=2).map(tuple),
    ),
)
TYPES = st.builds(
    tree.TypeName,
    st.sampled_from(["float", "half", "int8"]),
    st.lists(st.one_of(NAMES, st.just(tree.Number("4", 4))), max_size=2).map(tuple),
)
DEFS = st.builds(
    tree.Def,
    NAMES,
    st.lists(st.builds(tree.Param, TYPES, NAMES), max_size=3).map(tuple),
    st.lists(st.builds(tree.Result, NAMES, st.one_of(st.none(), TYPES)), max_size=3).map(tuple),
    st.lists(STATEMENTS, max_size=4).map(tuple),
)


@drawn(100, 500, st.lists(DEFS, min_size=1, max_size=3).map(tuple).map(tree.Unit))
def test_printing_and_parsing_are_inverse(unit):
    text = to_text(unit)
    again = parse(text)
    assert again == unit
    assert to_text(again) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("((a))+(b*c)", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("-(-a)", "--a"),
        ("-(a+b)", "-(a + b)"),
        ("(a<b)==(c<d)", "a < b == c < d"),
        ("(a<b)<c", "(a < b) < c"),
        ("(a?b:c)?d:e", "(a ? b : c) ? d : e"),
        ("a?(b?c:d):(e?f:g)", "a ? (b ? c : d) : e ? f : g"),
        ("X ( i ,j )", "X(i, j)"),
        ("X.0", "X.0"),
    ],
)
def test_fewest_brackets(text, canonical):
    (item,) = parse(f"def f(float(N) X) -> (Y) {{ Y = {text} }}").defs
    assert expression_text(item.statements[0].value) == canonical


def test_long_lines_are_broken():
    params = ", ".join(f"float(N{i}) tensor{i}" for i in range(8))
    clauses = ", ".join(f"index{i} in 0:N{i}" for i in range(8))
    text = f"def f({params}) -> (Y) {{ Y(i) +=! tensor0(i) where {clauses} }}"
    printed = to_text(parse(text))
    assert parse(printed) == parse(text)
    assert "\n    float(N1) tensor1,\n" in printed
    assert "\n        where index0 in 0:N0" in printed


def test_layout_and_comments_do_not_change_the_text():
    one = parse("def f(float(N) X)->Y{Y(i)=X(i)}")
    two = parse("# comment\ndef f(float(N) X) -> (Y) {\n\n  Y(i) = (X(i))  # comment\n}")
    other = parse("def f(float(N) X)->Y{Y(i)=X(j)}")
    assert to_text(one) == to_text(two) != to_text(other)
    assert to_text(two) == "def f(float(N) X) -> (Y) {\n    Y(i) = X(i)\n}\n"


def test_broken_statements_keep_their_words():
    unit = parse_tc(SourceText("def f(float(N) X) -> (Y) {\n Y(i) =\n   X(i)  2\n}")).unit
    assert "    Y(i) = X(i) 2\n" in to_text(unit)
