"""Messages as text: underlines that stand under the right characters, on any line."""

from __future__ import annotations

import sys

import pytest

from tc_jupyter.diagnostics import (
    WIDE,
    Diagnostic,
    Edit,
    Fix,
    Label,
    SourceText,
    Span,
    codes,
    edit_distance,
    nearest,
    render,
)


def at(source: SourceText, word: str, **rest) -> Diagnostic:
    start = source.text.index(word)
    return Diagnostic(codes.SYNTAX_ERROR, Span(start, start + len(word)), "message", **rest)


def marks(text: str, mark: str = "^") -> tuple[str, str]:
    """The source line and its row of marks, without the margin."""
    lines = text.splitlines()
    row = next(i for i, line in enumerate(lines) if line.strip(" |0123456789").startswith((mark, "-")) and mark in line)
    margin = lines[row].index("|") + 2
    return lines[row - 1][margin:], lines[row][margin:]


def test_the_format_of_the_design():
    source = SourceText("def matmul(float(M, K) A, float(K, N) B) -> (C) {\n    C(i, j) = A(i, k) * B(k, j)\n}")
    place = source.text.index("=")
    k = source.text.index("k)")
    item = Diagnostic(
        codes.REDUCTION_MISSING,
        Span(place, place + 1),
        "`=` does not combine the values over `k`",
        labels=(Label(Span(k, k + 1), "`k` is not on the left"),),
        help="replace `=` by `+=!`",
    )
    assert render([item], source) == "\n".join(
        [
            "error[TC204] reduction-missing: `=` does not combine the values over `k`",
            " --> cell:2:13",
            "  |",
            "2 |     C(i, j) = A(i, k) * B(k, j)",
            "  |             ^      - `k` is not on the left",
            "help: replace `=` by `+=!`",
        ]
    )


def test_a_fix_shows_the_line_after_it():
    source = SourceText("Y(i) = X(i) and b\nsecond")
    word = source.text.index("and")
    fix = Fix("replace `and` by `&&`", (Edit(Span(word, word + 3), "&&"),))
    text = render([at(source, "and", fix=fix)], source)
    assert text.endswith("help: replace `and` by `&&`\n1 | Y(i) = X(i) && b")


@pytest.mark.parametrize("before", ["\t", "a\t\t", "漢字 ", "e\u0301 ", "😀", "\0\x1b ", "x" * 1000, "漢" * 500])
@pytest.mark.parametrize("after", ["", " " + "y" * 2000, "\t漢"])
def test_marks_stand_under_the_word(before, after):
    source = SourceText(before + "WORD" + after)
    line, row = marks(render([at(source, "WORD")], source))
    wide = sum(1 for char in line[: line.index("WORD")] if char in "漢字😀") - line[: line.index("WORD")].count(
        "\u0301"
    )
    assert row.index("^") == line.index("WORD") + wide
    assert row.count("^") == 4
    assert len(line) <= 150


def test_long_lines_are_cut_on_both_sides():
    source = SourceText("a" * 5000 + "WORD" + "b" * 5000)
    line, _ = marks(render([at(source, "WORD")], source))
    assert line.startswith("...")
    assert line.endswith("...")


def test_control_characters_do_not_reach_the_terminal():
    source = SourceText("x \x1b[31m\0 WORD")
    assert not set(render([at(source, "WORD")], source)) & {"\x1b", "\0"}


def test_labels_on_other_lines_and_several_on_one():
    source = SourceText("first\n\n\nsecond third fourth")
    spots = {word: Span(source.text.index(word), source.text.index(word) + len(word)) for word in source.text.split()}
    item = Diagnostic(
        codes.SYNTAX_ERROR,
        spots["third"],
        "m",
        "here",
        labels=(Label(spots["first"], "one"), Label(spots["second"], "two"), Label(spots["fourth"], "four")),
    )
    assert render([item], source).splitlines()[2:] == [
        "  |",
        "1 | first",
        "  | ----- one",
        "...",
        "4 | second third fourth",
        "  | ------ ^^^^^ ------ four",
        "  |        here",
        "  | two",
    ]


def test_a_span_over_several_lines_marks_the_first():
    source = SourceText("abc def\nghi")
    line, row = marks(render([Diagnostic(codes.NO_DEF, Span(4, 11), "m")], source))
    assert (line, row) == ("abc def", "    ^^^")


@pytest.mark.parametrize("span", [Span(0, 0), Span(99, 200), Span(3, 3)])
@pytest.mark.parametrize("text", ["", "abc", "abc\n", "\n\n", "\r\nabc\r\n"])
def test_any_span_in_any_text_renders(text, span):
    assert "TC111" in render([Diagnostic(codes.NO_DEF, span, "m")], SourceText(text))


def test_the_lines_that_a_fix_changes_are_shown_and_of_a_long_one_the_changed_part():
    source = SourceText("a\nb\n" + "c" * 150 + "x" + "d" * 150)
    edits = tuple(Edit(Span(each, each + 1), "new") for each in (2, source.text.index("x")))
    shown = render([Diagnostic(codes.NO_DEF, Span(0, 1), "m", fix=Fix("do it", edits))], source).splitlines()
    (title,) = [number for number, line in enumerate(shown) if line == "help: do it"]
    short, long = shown[title + 1 :]
    assert short == "2 | new"
    assert "cnewd" in long
    assert long.startswith("3 | ...")
    assert len(long) < WIDE + 12


def test_colour_only_adds():
    source = SourceText("abc WORD")
    item = at(source, "WORD", label="here", help="help")
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", render([item], source, color=True)) == render([item], source)
    assert "\x1b" not in render([item], source)


def test_several_messages_are_apart():
    source = SourceText("abc")
    assert render([at(source, "a"), at(source, "b")], source).count("\n\n") == 1
    assert render([], source) == ""


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("weigth", ["weight", "width"], "weight"),
        ("sn", ["sin", "tan"], "sin"),
        ("x", ["y"], None),
        ("i", ["I"], "I"),
        ("completely", ["different"], None),
        ("a" * 100, ["a" * 99], None),
    ],
)
def test_nearest(name, names, found):
    assert nearest(name, names) == found


def test_edit_distance_counts_swaps_once_and_stops_at_the_limit():
    assert edit_distance("weigth", "weight", 3) == 1
    assert edit_distance("abc", "abc", 0) == 0
    assert edit_distance("abc", "xyz", 1) == 2


def test_codes_are_unique_and_named_like_their_constants():
    assert len({code.number for code in codes.ALL.values()}) == len(codes.ALL)
    for name, code in vars(codes).items():
        if isinstance(code, codes.Code):
            assert codes.ALL[code.number] is code
            assert name.endswith(code.name.upper().replace("-", "_")) or name.startswith(
                code.name.upper().replace("-", "_")
            )


def test_long_help_is_broken_between_words():
    source = SourceText("WORD")
    words = [f"word-{number}`a(i, j)`" for number in range(30)]
    long = "https://" + "x" * 150
    for item in (
        at(source, "WORD", help=" ".join([*words, long])),
        at(source, "WORD", fix=Fix(" ".join([*words, long]), ())),
    ):
        for color in (False, True):
            first, *rest = render([item], source, color).replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()[5:]
            assert first.startswith("help: word-0")
            assert all(line.startswith("      ") for line in rest)
            assert all(len(line) <= 100 or line.strip() == long for line in [first, *rest])
            assert " ".join([first, *rest]).split() == ["help:", *" ".join([*words, long]).split()]


def test_a_long_line_is_cut_around_all_marks_to_what_a_page_shows(monkeypatch):
    from tc_jupyter.diagnostics import NARROW, PAGE, WIDE

    source = SourceText("a" * 90 + " FIRST " + "b" * 20 + " WORD " + "c" * 90)
    label = Span(source.text.index("FIRST"), source.text.index("FIRST") + 5)
    message = at(source, "WORD", labels=(Label(label, "here"),))
    for most in (WIDE, NARROW):
        monkeypatch.setattr(PAGE, "columns", lambda most=most: most)
        line, row = marks(render([message], source))
        assert len(line) <= most + 6
        assert row.index("^") == line.index("WORD")
        assert row.index("-") == line.index("FIRST")


def test_many_messages_in_one_long_line_measure_it_once(monkeypatch):
    source = SourceText("x" * 9000)
    seen: list[str] = []
    rendering = sys.modules["tc_jupyter.diagnostics.render"]
    cell = rendering._cell
    monkeypatch.setattr(rendering, "_cell", lambda char, column: seen.append(char) or cell(char, column))
    found = [Diagnostic(codes.SYNTAX_ERROR, Span(place, place + 1), "message") for place in range(0, 9000, 90)]
    assert len(render(found, source).split("\n\n")) == 100
    assert len(seen) < 9000 + 100 * 200


def test_what_a_fix_inserts_at_one_place_stands_in_the_order_of_its_edits():
    edits = (Edit(Span(3, 4), "Z"), Edit(Span(3, 3), ", n"), Edit(Span(1, 1), "("), Edit(Span(3, 3), ", m"))
    assert Fix("", edits).applied("abcd") == "a(bc, n, mZ"
