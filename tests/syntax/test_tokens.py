"""Text -> tokens."""

from __future__ import annotations

import re

import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import SourceText
from tc_jupyter.syntax.tokens import KEYWORDS, classify_number, own_operators, tokenize


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.type, token.text) for token in tokenize(SourceText(text)).tokens]


@pytest.mark.parametrize("text", ["+=", "*=", "min=", "max=", "+=!", "*=!", "min=!", "max=!", "argmin=!", "any=!"])
def test_update_operators_are_one_token(text):
    assert kinds(f"T{' ' if text[0].isalpha() else ''}{text}x") == [("NAME", "T"), ("UPDATE", text), ("NAME", "x")]


def test_a_longer_name_is_no_operator():
    assert [kind for kind, _ in kinds("xmin=3 min_=3 min==3 any=3")] == [
        "NAME", "ASSIGN", "INTEGER", "NAME", "ASSIGN", "INTEGER", "MINMAX", "EQUALITY", "INTEGER", "NAME", "ASSIGN", "INTEGER",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[
            (text, "INTEGER")
            for text in ["0", "7", "0x1F", "0b101", "7u", "7l", "7ll", "7ul", "7ULL", "18446744073709551615"]
        ],
        *[
            (text, "NUMBER")
            for text in ["7.", ".7", "7e2", "7e-2", "7.5E3", "0x1.8p3", "7.f", "7e2F", "1e400", "0x.8p-3"]
        ],
        *[(text, "DIGIT_NAME") for text in ["3i", "2fc", "7f", "0x", "0b2", "1e5x", "3_"] if text != "3_"],
        *[
            (text, "ERROR")
            for text in ["017", "00", "1_000", "7lu", "7uu", "1.5x", "18446744073709551616", "0x1p"]
            if text != "0x1p"
        ],
    ],
)
def test_numbers(text, kind):
    assert classify_number(text)[0] == kind
    assert kinds(text) == [(kind, text)]
    assert (classify_number(text)[1] is not None) == (kind == "ERROR")


def test_a_dot_after_a_name_is_a_dimension():
    assert kinds("X.0 + .5") == [("NAME", "X"), ("DIMENSION", ".0"), ("SIGN", "+"), ("NUMBER", ".5")]
    assert kinds("X .5") == [("NAME", "X"), ("NUMBER", ".5")]


def test_two_dots_are_no_number():
    assert kinds("0..5") == [("INTEGER", "0"), ("DOTS", ".."), ("INTEGER", "5")]


def test_positions():
    tokens = tokenize(SourceText("a +\n  b")).tokens
    assert [(token.start, token.end, token.first) for token in tokens] == [(0, 1, True), (2, 3, False), (6, 7, True)]


def test_comments_are_not_read():
    assert kinds("a # b ; ^ 'x\nc") == [("NAME", "a"), ("NAME", "c")]


def test_words_that_may_be_reducers_are_found_in_one_walk():
    assert own_operators("a =! b=! 1c=! 1a1b=! min=! x=!= y+=! 12=! zz=!") == ("b", "c", "a1b", "zz")
    assert own_operators("x" * 2_000_000) == ()  # ended after hours while each letter was where a word may begin


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) A) -> (Y) { Y(i) = A(i) + 1 }",
        "def f(float(N) A, float a) -> (Y) { Y(i) = a * A(i) where i in 0:N }",
        "def f(float(N) X, float(N) B) -> (Y) { Y(i) = max(X(i), B(i)) }",
    ],
)
@pytest.mark.parametrize(
    ("latin", "other"),
    [("A", "\u0410"), ("X", "\u0425"), ("N", "\u039d"), ("B", "\u0412"), ("e", "\u0435"), ("a", "\u0430")],
)
def test_one_letter_that_only_looks_like_a_latin_one(text, latin, other):
    """A letter of another alphabet by accident, in a name or a reserved word that the text has: the fix gives the text that was meant."""
    for place in (i for i, char in enumerate(text) if char == latin):
        strange = text[:place] + other + text[place + 1 :]
        (found,) = (each for each in tc.analyze(strange).diagnostics if each.is_error)
        word = next(each.group() for each in re.finditer(r"\w+", text) if each.start() <= place < each.end())
        if text.count(word) == 1 and word not in KEYWORDS:
            continue  # no other place says what is meant
        assert found.fix is not None, strange
        for edit in sorted(found.fix.edits, key=lambda each: -each.span.start):
            strange = strange[: edit.span.start] + edit.text + strange[edit.span.end :]
        assert strange == text
        assert "looks like" in (found.help or "")


def test_two_parameters_that_look_the_same_stay_two():
    (found,) = tc.analyze("def f(float(N) A, float(N) \u0410) -> (Y) { Y(i) = A(i) - \u0410(i) }").diagnostics
    assert found.fix is not None
    assert {edit.text for edit in found.fix.edits} == {"A_"}


def test_capital_letters_stay_capital():
    (found,) = tc.analyze("def f(float(N) \u0416) -> (Y) { Y(i) = \u0416(i) }").diagnostics
    assert found.fix is not None
    assert {edit.text for edit in found.fix.edits} == {"Zh"}


@pytest.mark.parametrize("loop", ["for (int i = 1; i < N; i++) Y(i) = X(i)", "for i in range(1, N): Y(i) = 2*X(i)"])
def test_a_semicolon_before_a_loop_becomes_the_end_of_a_line(loop):
    """Without a sign between them, `X(0) for` would be no end of a statement, and the loop be unknown."""

    def told(text):
        return {each.message for each in tc.analyze(text).diagnostics if each.is_error and "`;`" not in each.message}

    text = f"def f(float(N) X) -> (float(N) Y) {{ Y(0) = X(0); {loop} }}"
    fix = next(each.fix for each in tc.analyze(text).diagnostics if "`;`" in each.message)
    (edit,) = fix.edits
    assert told(text[: edit.span.start] + edit.text + text[edit.span.end :]) == told(text)
