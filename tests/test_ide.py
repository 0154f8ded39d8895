"""Answers about a text: what an editor shows, in both languages, also for texts with mistakes."""

from __future__ import annotations

import json
import re
import threading
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter import ide
from tc_jupyter.compiler import analyze
from tc_jupyter.diagnostics import SourceText
from tc_jupyter.ide import layout, outline
from tc_jupyter.ide.cell import cell_of
from tc_jupyter.ide.pieces import pieces_of
from tc_jupyter.program import TC_FUNCTIONS
from tc_jupyter.syntax import KEYWORDS, parse_sac, parse_tc, sac_to_text, to_text
from tests.literate import all_cases

TC = """# averages
def conv(float(N) B, float(K) W, float s) -> (A) {
    A(i) +=! B(i + k) * W(k) * x where x = s
    T(j) = exp(A(j)) + W(j) where j in 0:3
}

def twice(float(N) B, float(K) W, float s) -> (R) {
    H = conv(B, W, s)
    R(i) = H(i) + H(i)
}
"""
SAC = """// doubles
float[.] f(float[.] a, int n) {
    b = { [i] -> a[i] * 2 | [0] <= [i] < [n] };
    return { [j] -> b[j] + 1 };
}

float[*] inc(float[*] A) {
    return { iv -> A[iv] + 1 };
}

float[.] g(float[.] a) {
    x = inc(a);
    return f(x, 3);
}
"""
TEXTS = {"tc": TC, "sac": SAC}
BAD = [
    "",
    " ",
    "\n\n",
    "def",
    "def f(",
    "def f(float(N) X) -> (Y) { Y(i) = ",
    "def f(float(N) X -> Y) { Y(i = X(i) }",
    "def f(float(N) X) -> (Y) { Y(i) = X(i +  }\ndef g(float(N) X) -> (Y) { Y(i) = X(i) }",
    "float[*] f(float[*] a) { return { iv -> ",
    "x = = ) ( ] [ } { def def where in",
    "\x00\ufeff\u2028 é ∑ 𝛼 # ünï\n/* */ // §",
    "%%tc\n%%sac",
]


def place(text: str, needle: str, shift: int = 0, which: int = 0) -> dict[str, int]:
    at = -1
    for _ in range(which + 1):
        at = text.index(needle, at + 1)
    line, character = SourceText(text).position(at + shift)
    return {"line": line, "character": character}


def slice_of(text: str, span: dict[str, dict[str, int]]) -> str:
    starts = SourceText(text).line_starts
    start, end = (starts[span[side]["line"]] + span[side]["character"] for side in ("start", "end"))
    return text[start:end]


def changed(text: str, edits: list) -> str:
    starts = SourceText(text).line_starts
    ordered = sorted(edits, key=lambda e: (e["span"]["start"]["line"], e["span"]["start"]["character"]))
    for edit in reversed(ordered):
        start, end = (starts[edit["span"][s]["line"]] + edit["span"][s]["character"] for s in ("start", "end"))
        text = text[:start] + edit["text"] + text[end:]
    return text


# check ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_check_is_the_analysis(language):
    assert ide.check(TEXTS[language], language) == tc.analyze(TEXTS[language], language=language).to_json()


def test_check_honours_its_options():
    strict = ide.check(TC, strict=True)["diagnostics"]
    assert {d["severity"] for d in strict if d["code"] == "TC322"} == {"error"}
    assert [d for d in ide.check(TC, allow=("TC322",))["diagnostics"] if d["code"] == "TC322"] == []


def test_check_sees_functions_of_other_cells():
    module = tc.compile("def other(float(N) X) -> (Y) { Y(i) = X(i) }")
    text = "def f(float(N) X) -> (Z) { Z = other(X) }"
    assert ide.check(text)["diagnostics"] != []
    assert ide.check(text, known=dict(module))["diagnostics"] == []
    longer = tc.compile("def other(float(N) X) -> (Y) { Y(i) = X(2 * i) }")  # another function of the same name
    assert ide.check(text, known=dict(longer))["functions"][0]["outputs"][0]["shape"] == ["(N + 1)//2"]


# hover ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needle", "shift", "kind", "title", "line"),
    [
        ("A(i)", 2, "index", "0 <= i < N - K + 1", "because 0 <= i + k < N  (B)"),
        ("W(k)", 2, "index", "0 <= k < K", "reduction index, inferred in round 1"),
        ("T(j)", 2, "index", "0 <= j < 3", "output index, given by `where`"),
        ("A(i)", 0, "tensor", "float32 A(N - K + 1)", "result"),
        ("T(j)", 0, "tensor", "float32 T(3)", "temporary, not returned"),
        ("B(i", 0, "tensor", "float32 B(N)", "parameter"),
        ("N) B", 0, "size", "size N", "checked at the call: K <= N + 1"),
        ("K) W", 0, "size", "size K", "extent of dimension 0 of `W`"),
        ("s)", 0, "scalar", "float32 s", "parameter"),
        ("x where", 0, "let", "x = s", "a name for this value, in this statement"),
        ("conv(B", 0, "def", "def conv(float(N) B, float(K) W, float s) -> (A)", "returns float32 A(N - K + 1)"),
    ],
)
def test_hover_on_names(needle, shift, kind, title, line):
    told = ide.hover(TC, place(TC, needle, shift))
    assert told is not None
    assert (told["kind"], told["title"]) == (kind, title)
    assert line in told["lines"]


@pytest.mark.parametrize(
    ("needle", "shift", "kind", "title"),
    [("exp", 1, "function", "exp(x)"), ("float", 2, "type", "float"), ("where", 0, "keyword", "where"),
     ("+=!", 1, "operator", "+=!"), ("->", 0, "operator", "->")],
)  # fmt: skip
def test_hover_on_words_documents_them(needle, shift, kind, title):
    told = ide.hover(TC, place(TC, needle, shift))
    assert told is not None
    assert (told["kind"], told["title"]) == (kind, title)
    assert told["documentation"]


def test_hover_says_why_a_later_round_was_needed():
    told = ide.hover(TC, place(TC, "A(i)", 2))
    assert told is not None
    assert "round 1: `0 <= k < K`" in told["lines"]
    assert any("for all `k`" in line for line in told["lines"])


def test_hover_tells_where_an_array_starts():
    text = "def d(float(N) X) -> (Y) { Y(i) = X(i - 2) }"
    told = ide.hover(text, place(text, "Y(i)"))
    assert told is not None
    assert told["title"] == "float32 Y(N)"
    assert "indices from 2 up to N + 1" in told["lines"]


def test_hover_says_how_a_gradient_is_computed():
    text = "def f(float(N) X, float(N) W) -> (Y) { Y(i) = sin(X(i)) * W(i) }"
    of_result, of_parameter = (ide.hover(text, place(text, needle))["lines"] for needle in ("Y(i)", "W(i)"))
    assert of_result[-2:] == ["gradient: dX(i) = dY(i) * W(i) * cos(X(i))", "gradient: dW(i) = dY(i) * sin(X(i))"]
    assert of_parameter[-1] == "gradient: dW(i) = dY(i) * sin(X(i))"
    whole = "def f(int32(N) X, float(N) W) -> (Y) { Y(i) = X(i) }"
    assert not any("gradient" in line for line in ide.hover(whole, place(whole, "X(i)"))["lines"])


@pytest.mark.parametrize("needle", ["averages", "0:3"])
def test_hover_on_comments_and_numbers_says_nothing(needle):
    assert ide.hover(TC, place(TC, needle)) is None


def test_hover_counts_code_points():
    text = "# 𝛼𝛽 é\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }  # 𝛾"
    assert ide.hover(text, {"line": 1, "character": 4})["title"].startswith("def f(")
    assert ide.hover(text, {"line": 0, "character": 3}) is None
    assert slice_of(text, ide.hover(text, place(text, "X(i)"))["span"]) == "X"


def test_hover_in_a_text_with_mistakes_tells_what_is_known():
    text = "def f(float(N) X) -> (Y, Z) { Y(i) = X(i)\n Z(i) = X(i) + ) }"
    assert ide.hover(text, place(text, "X(i)"))["title"] == "float32 X(N)"
    assert ide.hover(text, place(text, "(i)", 1))["title"] == "0 <= i < N"
    assert ide.hover(text, place(text, "X(i) +"))["title"] == "float32 X(N)"
    assert "not known" in ide.hover(text, place(text, "X(i) +", 2))["lines"][0]


@pytest.mark.parametrize(
    ("needle", "shift", "kind", "title"),
    [
        ("a[i]", 0, "tensor", "float32 a(a_0)"),
        ("[j]", 1, "index", "0 <= j < n"),
        ("n]", 0, "scalar", "int32 n"),
        ("[i]", 1, "index", "[0] <= [i] < [n]"),
        ("iv ->", 0, "index", "index iv"),
        ("A[iv]", 0, "tensor", "float[*] A"),
        ("inc(a", 0, "def", "float[*] inc(float[*] A)"),
        ("x,", 0, "tensor", "x = inc(a)"),
        ("return", 3, "keyword", "return"),
        ("float", 0, "type", "float"),
    ],
)
def test_hover_in_sac(needle, shift, kind, title):
    told = ide.hover(SAC, place(SAC, needle, shift), "sac")
    assert told is not None
    assert (told["kind"], told["title"]) == (kind, title)


# completion and signatures -------------------------------------------------------------------------------------------------------


def labels(text: str, position: dict[str, int], language: str = "tc") -> list[str]:
    told = ide.complete(text, position, language)
    return [] if told is None else [item["label"] for item in told["items"]]


def test_completion_replaces_the_word_before_the_cursor():
    told = ide.complete(TC, place(TC, "exp", 2))
    assert told is not None
    assert slice_of(TC, told["span"]) == "ex"
    assert {
        "label": "exp",
        "type": "function",
        "detail": "exp(x)",
        "documentation": "e to the power x",
        "apply": "exp(",
    } in told["items"]


def test_completion_puts_names_of_the_statement_first():
    found = labels(TC, place(TC, "exp", 1))
    assert found[0] == "j"
    assert found.index("A") < found.index("abs")
    assert {"N", "K", "W", "s", "T", "twice", "where", "float32"} <= set(found)


def test_completion_of_an_unfinished_statement():
    text = "def f(float(N) Xlong, float s) -> (Y) {\n    Y(i) = X"
    told = ide.complete(text, {"line": 1, "character": 12})
    assert told is not None
    assert {"label": "Xlong", "type": "tensor", "detail": "float32(N)"} in told["items"]


def test_completion_stays_away_where_nothing_fits():
    assert labels(TC, place(TC, "averages", 3)) == []
    assert labels("def f", {"line": 0, "character": 5}) == []
    assert labels("def f(float(N) X) -> (Y) { Y(i) = 12", {"line": 0, "character": 36}) == []


def test_completion_is_bounded():
    text = "def f(float(N) X) -> (Y) {\n" + "".join(f"    T{n}(i) = X(i)\n" for n in range(700)) + "    Y(i) = T"
    told = ide.complete(text, {"line": 701, "character": 12})
    assert told is not None
    assert len(told["items"]) == 500


def test_completion_in_sac():
    found = labels(SAC, place(SAC, "inc(a", 2), "sac")
    assert {"inc", "f", "take", "sum", "double", "with"} <= set(found)
    assert "exists" not in found


@pytest.mark.parametrize(
    ("text", "label", "active"),
    [
        ("def f(float(N) X) -> (Y) { Y(i) = pow(X(i), |", "pow(a, b)", 1),
        ("def f(float(N) X) -> (Y) { Y(i) = pow(X(|i), 2) }", "pow(a, b)", 0),
        ("def f(float(N) X) -> (Y) { Y(i) = max(1, 2, |", "max(a, b, ...)", 2),
        ("def f(float(N) X) -> (Y) { Y(i) = exp(pow(1, 2), |", "exp(x)", 1),
    ],
)
def test_signature_of_builtins(text, label, active):
    at = text.index("|")
    told = ide.signature(text.replace("|", ""), {"line": 0, "character": at})
    assert told is not None
    assert (told["label"], told["active"]) == (label, active)


def test_signature_of_a_def_points_at_its_parameters():
    told = ide.signature(TC, place(TC, "conv(B, W", 8))
    assert told is not None
    assert [told["label"][a:b] for a, b in told["parameters"]] == ["float(N) B", "float(K) W", "float s"]
    assert told["active"] == 1
    assert slice_of(TC, told["span"]) == "conv(B, W, s)"


def test_signature_of_a_function_of_another_cell():
    module = tc.compile("def other(float(N, M) X, float s) -> (Y) { Y(i, j) = s * X(i, j) }")
    text = "def f(float(N, M) X) -> (Z) { Z = other(X, "
    told = ide.signature(text, {"line": 0, "character": len(text)}, known=dict(module))
    assert told is not None
    assert [told["label"][a:b] for a, b in told["parameters"]] == ["float32(N, M) X", "float32 s"]
    assert told["active"] == 1


@pytest.mark.parametrize(("needle", "shift"), [("B(i", 3), ("conv(float", 6), ("averages", 2), ("A(i)", 0)])
def test_no_signature_outside_of_calls(needle, shift):
    assert ide.signature(TC, place(TC, needle, shift)) is None


def test_signature_in_sac():
    told = ide.signature(SAC, place(SAC, "f(x, 3", 6), "sac")
    assert told is not None
    assert [told["label"][a:b] for a, b in told["parameters"]] == ["float[.] a", "int n"]
    assert told["active"] == 1


# definition and rename -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needle", "shift", "kind", "line", "character"),
    [("conv(B", 0, "def", 1, 4), ("A(j)", 0, "tensor", 2, 4), ("x where", 0, "let", 2, 39), ("i + k", 0, "index", 2, 6),
     ("B(i", 0, "tensor", 1, 18), ("s\n    T", 0, "scalar", 1, 39)],
)  # fmt: skip
def test_definition(needle, shift, kind, line, character):
    told = ide.definition(TC, place(TC, needle, shift))
    assert told is not None
    assert (told["kind"], told["cell"]) == (kind, None)
    assert told["span"]["start"] == {"line": line, "character": character}


def test_definition_of_a_function_of_another_cell_has_no_place():
    module = tc.compile("def other(float(N) X) -> (Y) { Y(i) = X(i) }")
    text = "def f(float(N) X) -> (Z) { Z = other(X) }"
    told = ide.definition(text, place(text, "other"), known=dict(module))
    assert told == {"name": "other", "kind": "def", "cell": None, "span": None}
    assert ide.definition(TC, place(TC, "exp")) is None


def test_rename_keeps_to_its_scope():
    told = ide.rename(TC, place(TC, "i + k"), "row")
    assert changed(TC, told["edits"]) == TC.replace("A(i) +=! B(i + k)", "A(row) +=! B(row + k)")
    told = ide.rename(TC, place(TC, "B(i"), "Signal")
    head, _, tail = TC.partition("def twice")
    assert changed(TC, told["edits"]) == head.replace("B", "Signal") + "def twice" + tail
    told = ide.rename(TC, place(TC, "conv("), "filter_")
    assert changed(TC, told["edits"]) == TC.replace("conv", "filter_")


def test_renaming_changes_no_meaning():
    for needle, shift in (("A(i)", 2), ("A(i)", 0), ("N) B", 0), ("x where", 0), ("s)", 0)):
        told = ide.rename(TC, place(TC, needle, shift), "fresh")
        made = tc.analyze(changed(TC, told["edits"]))
        assert [d.code for d in made.diagnostics] == [d.code for d in tc.analyze(TC).diagnostics]


@pytest.mark.parametrize(
    ("needle", "shift", "name"),
    [("A(i)", 2, "k"), ("A(i)", 2, "N"), ("A(i)", 2, "B"), ("A(i)", 2, "twice"), ("A(i)", 2, "where"), ("A(i)", 2, "2x"),
     ("A(i)", 2, ""), ("A(i)", 2, "a b"), ("A(i)", 0, "exp"), ("N) B", 0, "lambda"), ("A(i)", 0, "i"), ("conv(", 0, "twice")],
)  # fmt: skip
def test_names_that_are_refused(needle, shift, name):
    told = ide.rename(TC, place(TC, needle, shift), name)
    assert told["edits"] == []
    assert told["refused"]


def test_rename_first_asks_what():
    told = ide.rename(TC, place(TC, "A(i)", 2))
    assert (told["name"], told["kind"], told["edits"], told["refused"]) == ("i", "index", [], None)
    assert slice_of(TC, told["span"]) == "i"
    assert ide.rename(TC, place(TC, "exp")) is None
    assert ide.rename(TC, place(TC, "float")) is None


def test_rename_in_sac_covers_the_bounds():
    told = ide.rename(SAC, place(SAC, "[i]", 1), "row", "sac")
    assert changed(SAC, told["edits"]) == SAC.replace(
        "[i] -> a[i] * 2 | [0] <= [i] <", "[row] -> a[row] * 2 | [0] <= [row] <"
    )
    told = ide.rename(SAC, place(SAC, "inc("), "more", "sac")
    assert changed(SAC, told["edits"]) == SAC.replace("inc(", "more(")
    assert ide.rename(SAC, place(SAC, "x ="), "a", "sac")["refused"]


# format --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_formatted_texts_stay(language):
    assert ide.format_text(TEXTS[language], language) == {"text": TEXTS[language], "refused": None}


def test_format_is_the_printers_layout():
    text = "def  f(float(N) X)->Y{Y(i)=(X(i)*(2))where i=[0,N[ }def g(float(N) X)->(Y){Y(i)=X(i)}"
    assert ide.format_text(text)["text"] == to_text(parse_tc(SourceText(text)).unit).rstrip("\n")
    text = "float[*] inc(float[*]A){return({iv->A[iv]+1});}"
    assert ide.format_text(text, "sac")["text"] == sac_to_text(parse_sac(SourceText(text)).unit)


def test_format_keeps_comments_where_they_are():
    text = """
  # first
def f(float(N) X)->(Y){ # head
  # before
     Y(i)=X(i)   # behind
  # last
} # end
# after"""
    expected = """# first
def f(float(N) X) -> (Y) {  # head
    # before
    Y(i) = X(i)  # behind
    # last
}  # end
# after"""
    assert ide.format_text(text)["text"] == expected
    assert ide.format_text(expected)["text"] == expected


def test_format_keeps_comments_inside_statements_and_signatures():
    text = "def f(float(N) X,  # the data\n  float s # a factor\n) -> (Y) {\n  Y(i) = X(i)  # one\n   * s  # two\n}\n"
    made = ide.format_text(text)["text"]
    assert made == (
        "def f(\n    float(N) X,  # the data\n    float s  # a factor\n) -> (Y) {\n    # one\n    Y(i) = X(i) * s  # two\n}\n"
    )
    assert ide.format_text(made)["text"] == made


def test_format_keeps_what_an_allow_comment_silences():
    text = "def f(float(N) X, float(M) Z) -> (Y) {\n  Y(i) = X(i) +  # allow TC322\n     Z(2 * i) where i in 0:N\n}\n"
    made = ide.format_text(text)["text"]
    assert [d.code.number for d in tc.analyze(made).diagnostics] == [
        d.code.number for d in tc.analyze(text).diagnostics
    ]


def test_format_in_sac_keeps_both_kinds_of_comments():
    text = (
        "/* many\n   lines */\nfloat[*] inc(float[*] A) { // head\n return { iv -> A[iv] /* here */ + 1 }; // tail\n}\n"
    )
    made = ide.format_text(text, "sac")["text"]
    assert made == (
        "/* many\n   lines */\nfloat[*] inc(float[*] A) {  // head\n    /* here */\n    return { iv -> A[iv] + 1 };  // tail\n}\n"
    )
    assert ide.format_text(made, "sac")["text"] == made


def test_format_refuses_texts_with_syntax_errors():
    told = ide.format_text("def f(float(N) X) -> (Y) {\n  Y(i) = X(i \n}")
    assert told["text"] is None
    assert "line 2" in told["refused"]
    assert ide.format_text("")["text"] is None


# inspect -------------------------------------------------------------------------------------------------------------------------


def state_of(text: str, functions: dict, **options) -> dict:
    cell = {"cell": "c", "version": 3, "source": text, **options}
    (found,) = ide.inspect("cells", cells=[cell], functions=functions)["cells"]
    assert (found["cell"], found["version"]) == ("c", 3)
    return {row["name"]: row for row in found["defs"]}


SCALE = "def scale(float(N) X) -> (Y) { Y(i) = 2 * X(i) }"


def test_states_of_a_def():
    module = tc.compile(SCALE, target="interpreter")
    assert state_of(SCALE, {})["scale"]["state"] == "analysed"
    assert state_of(SCALE, dict(module))["scale"]["state"] == "bound"
    assert state_of(SCALE.replace(" = ", "   =  ") + " # note", dict(module))["scale"]["state"] == "bound"
    assert state_of(SCALE.replace("2", "3"), dict(module))["scale"]["state"] == "stale"
    assert state_of(SCALE, dict(module), target="cpu")["scale"]["state"] == "stale"
    assert state_of(SCALE, dict(module), strict=True)["scale"]["state"] == "stale"
    assert state_of(SCALE.replace("X(i)", "Q(i)"), dict(module))["scale"]["state"] == "failing"
    module.scale(np.ones(3, np.float32))
    row = state_of(SCALE, dict(module))["scale"]
    assert (row["state"], row["target"], row["shapes"]) == ("compiled", "interpreter", ["Y (N)"])
    assert row["calls"] == ["N=3"]
    module.scale(np.ones(5, np.float32))
    assert state_of(SCALE, dict(module))["scale"]["calls"] == ["N=5", "N=3"]
    assert state_of(SCALE.replace("2", "3"), dict(module))["scale"]["calls"] == []


def test_a_def_is_stale_when_a_def_that_it_calls_changed():
    text = "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) X) -> (Z) { Z = g(X) }"
    module = tc.compile(text, target="interpreter")
    rows = state_of(text.replace("= X(i)", "= X(i) + 1"), dict(module))
    assert (rows["g"]["state"], rows["f"]["state"]) == ("stale", "stale")
    first = tc.compile("def g(float(N) X) -> (Y) { Y(i) = X(i) }")
    caller = "def f(float(N) X) -> (Z) { Z = g(X) }"
    functions = dict(first) | dict(tc.compile(caller, known=dict(first)))
    assert state_of(caller, functions, known=functions)["f"]["state"] == "bound"
    functions |= dict(tc.compile("def g(float(N) X) -> (Y) { Y(i) = X(i) }"))
    assert state_of(caller, functions, known=functions)["f"]["state"] == "stale"


def test_functions_that_no_cell_defines_are_listed():
    module = tc.compile(SCALE)
    (other,) = ide.inspect("cells", cells=[], functions=dict(module))["others"]
    assert (other["name"], other["state"]) == ("scale", "bound")
    assert other["signature"].startswith("scale(float32(N) X)")


@pytest.mark.parametrize("form", ["loops", "cuda"])
def test_code_with_the_lines_of_the_cell(form):
    told = ide.inspect("code", TC.split("\n\n")[0].replace("-> (A)", "-> (A, T)"), name="conv", form=form)
    assert form in told["forms"]
    assert len(told["lines"]) == len(told["text"].split("\n"))
    assert {2, 3} <= set(told["lines"])
    assert told["note"] is None


def test_code_uses_the_bound_function():
    function = tc.compile(SCALE).scale
    split = function.with_schedule(function.schedule().split("Y", "i", factor=7))
    assert "0:7" not in ide.inspect("code", SCALE, name="scale", form="loops")["text"]
    told = ide.inspect("code", SCALE, name="scale", form="loops", functions={"scale": split})
    assert told["text"] == split.source("loops")
    other = ide.inspect("code", SCALE.replace("2", "3"), name="scale", form="loops", functions={"scale": split})
    assert other["text"] != told["text"]


def test_code_that_cannot_be_made_says_why():
    assert "no def" in ide.inspect("code", TC, name="nothing", form="loops")["note"]
    assert "mistake" in ide.inspect("code", SCALE.replace("X(i)", "Q(i)"), name="scale", form="loops")["note"]
    assert "known at the call" in ide.inspect("code", SAC, "sac", name="inc", form="loops")["note"]
    assert "%%sac" in ide.inspect("code", TC, name="conv", form="rewrites")["note"]
    both = SCALE + "\ndef wrong(float(N) X) -> (Y) { Y(i) = Q(i) }"
    assert ide.inspect("code", both, name="scale", form="loops")["text"].startswith("kernel scale")


def test_unknown_views_and_forms():
    for what, request in (("colours", {}), ("code", {"name": "conv", "form": "pascal"})):
        with pytest.raises(ide.UnknownForm):
            ide.inspect(what, TC, **request)
    with pytest.raises(ide.UnknownForm):
        ide.inspect("schedule", TC, name="conv", schedule=[{"primitive": "replay", "arguments": []}])


def test_rewrites_of_a_sac_function():
    assert "// bounds are inferred" in ide.inspect("code", SAC, "sac", name="inc", form="rewrites")["text"]


def test_schedule_with_sizes_that_fit():
    told = ide.inspect("schedule", TC, name="conv")
    assert told["sizes"]["K"] <= told["sizes"]["N"] - 2  # the conditions of the def hold
    assert told["sizes"]["K"] >= 3
    assert told["primitives"] != []
    assert "for A" in told["loops"]


def test_schedule_of_given_primitives():
    split = [{"primitive": "split", "arguments": ["A", "i"], "options": {"factor": 16}}]
    told = ide.inspect("schedule", TC, name="conv", sizes={"N": 64, "K": 5}, schedule=split)
    assert told["primitives"] == ["split('A', 'i', factor=16)"]
    assert told["loops"].startswith("for A[i.outer] in 0:4")
    (first, *_) = told["stages"]
    assert first["loops"][0] == {"name": "i.outer", "min": "0", "extent": "4", "annotation": None}
    assert first["visits"] == 1


def test_an_illegal_primitive_answers_with_its_diagnostics_and_the_nest_before():
    steps = [
        {"primitive": "split", "arguments": ["A", "i"], "options": {"factor": 16}},
        {"primitive": "fuse", "arguments": ["A", "nope", "k"]},
    ]
    told = ide.inspect("schedule", TC, name="conv", schedule=steps)
    assert told["primitives"] == ["split('A', 'i', factor=16)"]
    assert told["diagnostics"][0]["code"].startswith("TC4")
    assert "i.outer" in told["loops"]


@pytest.mark.parametrize("sizes", [{"N": -1}, {"Q": 3}, {"N": 2**70}])
def test_sizes_that_make_no_sense_are_told(sizes):
    told = ide.inspect("schedule", TC, name="conv", sizes=sizes)
    assert told["note"]
    assert told["loops"] == ""


# keywords ------------------------------------------------------------------------------------------------------------------------


def test_keywords_are_those_of_the_language():
    words = ide.keywords("tc")
    assert {w for kind in ("keywords", "constants", "types", "reductions") for w in words[kind]} == set(KEYWORDS)
    assert {f["name"] for f in words["functions"]} == set(TC_FUNCTIONS)
    assert {f["name"]: f["parameters"] for f in words["functions"]}["max"] == ["a", "b", "..."]
    assert {"shape", "take", "exp"} <= {f["name"] for f in ide.keywords("sac")["functions"]}


# any text ------------------------------------------------------------------------------------------------------------------------


def ask_everything(text: str, language: str, position: dict[str, int]) -> list:
    cell = {"cell": "c", "version": 1, "source": text, "language": language}
    return [
        ide.check(text, language),
        ide.hover(text, position, language),
        ide.complete(text, position, language),
        ide.signature(text, position, language),
        ide.definition(text, position, language),
        ide.rename(text, position, "fresh", language),
        ide.format_text(text, language),
        ide.inspect("cells", cells=[cell]),
    ]


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_texts_with_mistakes_are_answered(language):
    for text in [*BAD, *(TEXTS[language][:cut] for cut in range(0, len(TEXTS[language]), 9))]:
        for position in (
            {"line": 0, "character": 0},
            {"line": text.count("\n"), "character": 10**6},
            {"line": 99, "character": 3},
        ):
            json.dumps(ask_everything(text, language, position), allow_nan=False)


@pytest.mark.parametrize("language", ["tc", "sac"])
def test_every_position_is_answered(language):
    text = TEXTS[language]
    for line, content in enumerate(text.split("\n")):
        for character in range(len(content) + 1):
            position = {"line": line, "character": character}
            told = ide.hover(text, position, language)
            if told is not None:
                span = told["span"]
                assert span["start"]["character"] <= character <= span["end"]["character"]
            ide.complete(text, position, language)
            ide.signature(text, position, language)
            ide.definition(text, position, language)
            renamed = ide.rename(text, position, "fresh", language)
            if renamed is not None and renamed["edits"]:
                assert "fresh" in changed(text, renamed["edits"])


def test_long_texts_are_read_around_the_position():
    text = "".join(TC.replace("conv", f"conv{n}").replace("twice", f"twice{n}") for n in range(400))
    assert len(text) > 100_000
    position = place(text, "conv300(B")
    assert ide.hover(text, position)["title"].startswith("def conv300(")
    assert ide.definition(text, position)["span"]["start"] == place(text, "conv300")
    assert ide.signature(text, place(text, "conv300(B", 8))["active"] == 0
    told = ide.rename(text, place(text, "A(i)", 2, 300), "row")
    assert len(told["edits"]) == 2


def test_long_sac_texts_are_read_around_the_position():
    text = "".join(
        SAC.replace("inc(", f"inc{n}(").replace(" f(", f" f{n}(").replace(" g(", f" g{n}(") for n in range(150)
    )
    assert len(text) > 30_000
    assert ide.hover(text, place(text, "inc90(a"), "sac")["title"] == "float[*] inc90(float[*] A)"
    assert ide.definition(text, place(text, "f90(x"), "sac")["span"]["start"] == place(text, "f90(float")


def test_a_def_that_does_not_start_its_line_is_answered():
    text = "- def f(float(N) X) -> (Y) { Y(i) = X(i) }"
    assert ide.inspect("schedule", text, name="f")["note"].startswith("`f` has a mistake")
    assert ide.hover(text + " # long" * 10_000, {"line": 0, "character": 29}) is not None


def test_answers_from_several_threads_agree():
    position = place(TC, "A(i)", 2)
    texts = [TC.replace("averages", f"averages {n}") for n in range(8)]
    expected = [json.dumps(ask_everything(text, "tc", position)) for text in texts]
    found: dict[int, list[str]] = {}

    def run(number: int) -> None:
        found[number] = [json.dumps(ask_everything(text + " ", "tc", position)) for text in texts]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(answers == found[0] for answers in found.values())
    assert len(expected) == len(found[0])
    assert [json.loads(a)[1] for a in found[0]] == [json.loads(a)[1] for a in expected]


# the whole language reference ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def references() -> list[tuple[str, str]]:
    """Every program of the reference without a mistake, once."""
    pairs = dict.fromkeys((case.language, case.program) for case in all_cases())
    return [pair for pair in pairs if tc.analyze(pair[1], language=pair[0]).ok]


@pytest.mark.some(4)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.xdist_group("references")
def test_every_program_of_the_reference_is_laid_out_without_change(references, part):
    for language, text in references[part::4]:
        told = ide.format_text(text, language)
        assert told["refused"] is None, text
        again = ide.format_text(told["text"], language)
        assert again["text"] == told["text"], text
        parse = parse_sac if language == "sac" else parse_tc
        assert parse(SourceText(told["text"])).unit == parse(SourceText(text)).unit


def test_reads_of_a_tensor_whose_name_begins_with_a_digit_are_renamed():
    text = "def f(float(N) 3x) -> (2y) { 2y(i) = 2 * 3x(i) + 3x(0) }"
    told = ide.rename(text, {"line": 0, "character": text.index("3x")}, "zzq", "tc")
    assert told is not None
    assert changed(text, told["edits"]) == text.replace("3x", "zzq")


@pytest.mark.some(4)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.xdist_group("references")
def test_renaming_means_the_same_everywhere_in_the_reference(references, part):
    # likely typos, and names that Python cannot spell
    told_by_name = {"TC233", "TC237"}
    count = 0
    for language, text in references[9 * part :: 36]:
        before = [d.code.number for d in tc.analyze(text, language=language).diagnostics]
        cell = cell_of(text, language)
        for found in {place.key: place for place in cell.names.places}.values():
            line, character = cell.source.position(found.span.start)
            told = ide.rename(text, {"line": line, "character": character}, "zzq", language)
            if told is None or told["refused"] is not None:
                assert found.kind in ("function", "type") or told is not None
                continue
            count += 1
            after = [d.code.number for d in tc.analyze(changed(text, told["edits"]), language=language).diagnostics]
            assert sorted(set(after) - told_by_name) == sorted(set(before) - told_by_name), (found, text)
    assert count > 25


@pytest.mark.some(9)
@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_what_is_made_of_pieces_is_what_the_whole_has(case):
    """Comments have the words and braces that tell where defs are; another def has a mistake."""
    start, other = {
        "tc": ("# a def {", "def another_one(float(N) X) -> (Y) { Y(i) = X(j) }"),
        "sac": ("/* { */", "double[.] another_one(double[.] x) { return x + y; }"),
    }[case.language]
    text, language = f"{start}\n\n{case.program.strip()}\n\n\n{start}\n{other}  {start}\n{start}\n", case.language
    if pieces_of(text, language) is not None:
        assert ide.format_text(text, language) == layout._format(text, language)
        says_what_the_whole_says(text, language)


def says_what_the_whole_says(text, language="tc"):
    diagnostics = analyze(text, language=language).diagnostics
    if all(not found.is_error or found.code.number > "TC200" for found in diagnostics):
        assert ide.symbols(text, language) == sorted(outline._symbols(cell_of(text, language)), key=outline._begin)
    found, whole = ide.check(text, language), analyze(text, language=language).to_json()
    assert found.get("open") == whole.get("open")
    if not any(message["code"] == "TC103" for message in whole["diagnostics"]):
        assert found["functions"] == whole["functions"]
    # a character that stands in several defs is told once for each def, with a fix for that def
    one, other = ([d for d in each["diagnostics"] if d["code"] != "TC103"] for each in (found, whole))
    for each in (*one, *other):
        if each["code"] == "TC201":  # a piece does not know the other defs, one of which the whole may propose
            each |= {"fix": None, "help": None}
    assert one == other


LINES = {
    "constant": "const float(3) C = [1, 2, 1]",
    "f": "def f(float(N) X) -> (Y) { Y(i) +=! X(i + k) * C(k) }",
    "g": "def g(float(N) X) -> (Z) {\n    Y = f(X)\n    Z(i) = Y(i) * C(0)\n}",
    "f again": "def f(float(N) X) -> (Y) { Y(i) = X(i) }",
    "back": "def back(float(N) X) -> (Y) { A = forth(X)  Y = g(A) }",
    "forth": "def forth(float(N) X) -> (Y) { Y = back(X) }",
    "C is a parameter": "def other(float(N) C) -> (Y) { Y(i) = C(i) }",
    "a word": "def",
    "a head": "def new(float(N) X",
    "something else": "Y(i) = X(i)",
    "two in a line": "def one() -> (Y) { Y = 1 } def two(float(N) X) -> (Y) { A = one()  Y(i) = X(i) + A }",
    "a constant inside": "def h(float(N) X) -> (Y) { const float C = 2  Y(i) = C * X(i) }",
    "a reducer": "reduce C2(float a, float b) = a + b from 0\nconst float D = 2",
    "of the reducer": "def r(float(N) X) -> (s) { s C2=! X(i) * D }",
}


@pytest.mark.parametrize("seed", range(40))
def test_texts_on_their_way_are_cut_too(seed):
    """What is analysed def by def says what the analysis of the whole text says, whatever somebody has typed so far."""
    random = Random(seed)
    names = random.choices(list(LINES), k=random.randrange(3, 8))
    text = "\n".join(LINES[name] for name in [*names, "g"]) + "\n"
    assert (pieces_of(text, "tc") is not None) == (len(re.findall(r"\b(?:def|reduce) \w", text)) > 1)
    says_what_the_whole_says(text)


@pytest.mark.parametrize("written", ["H.at[I].add(X)", "np.add.at(H, I, X)", "if (X(i) > 0) H.at[I].add(X);"])
def test_what_a_fix_writes_stands_in_its_own_def(written):
    """Two defs with one mistake each, whose fixes write the same texts."""
    one = f"def {{}}(float(N) X, int32(N) I) -> (H) {{{{\n    {written}\n}}}}\n"
    says_what_the_whole_says(one.format("f") + one.format("g"))


def test_what_a_fix_writes_stands_in_its_own_statement():
    text = "def f(float(N) X, int32(N) I) -> (H) {\n    H.at[I].add(X)\n    H.at[I].add(X)\n}\n"
    (found,) = [each for each in ide.check(text, "tc")["diagnostics"] if each["code"] == "TC315"]
    assert found["span"]["start"]["line"] == found["span"]["end"]["line"] == 1


def test_a_word_that_is_typed_changes_no_other_def():
    text = "".join(f"{LINES['f'].replace('f(', f'f{n}(')}\n" for n in range(6))
    before = {part.text for part in pieces_of(f"{LINES['constant']}\n{text}", "tc")}
    for typed in ("d", "def", "def f3", LINES["f"].replace("f(", "f3("), LINES["constant"].replace("C", "D")):
        after = pieces_of(f"{LINES['constant']}\n{text}{typed}\n{LINES['g']}\n", "tc")
        assert len([part for part in after if part.text not in before]) <= 3, typed


def test_types_and_operators_of_a_long_text(monkeypatch):
    one = "double[.] f{n}(pair a) {{\n    b = {{ [i] -> 2.0 * a[i] }};  // {pad}\n    return b;\n}}\n"
    functions = "".join(one.format(n=n, pad="x" * 200) for n in range(12))
    operator = "double[.] + (double[.] a, double[.] b) { return { [i] -> a[i] * b[i] }; }\n"
    zero = "double[.] zero(double[.] a) { return a; }\n"
    texts = [
        f"{before}typedef double[2] pair;\n{after}{functions}" for before in ("", zero) for after in ("", operator)
    ]
    places = [[(n, line.index("a[i] }")) for n, line in enumerate(text.split("\n")) if "2.0" in line] for text in texts]

    def told():
        return [
            ide.hover(text, {"line": line, "character": column}, "sac")
            for text, found in zip(texts, places, strict=True)
            for line, column in found[::5]
        ]

    of_one = told()
    monkeypatch.setattr(ide.cell, "WHOLE", 1_000_000)
    assert of_one == told()
    assert {each["title"] for each in of_one} >= {"float64 a(2)"}


def test_constants_of_a_long_text():
    """Above some thousand characters, a question is answered from the def that it is about, and what that mentions."""
    defs = "".join(
        f"def f{n}(float(N) X) -> (Y) {{\n    Y(i) +=! X(i + k) * C(k)  # {'x' * 200}\n}}\n" for n in range(12)
    )
    for text in (f"{LINES['constant']}\n{defs}", f"{LINES['f again']}\n{LINES['constant']}\n{defs}"):
        lines = text.split("\n")
        first = next(n for n, line in enumerate(lines) if "const" in line)
        for line in (first, first + 2):
            place = {"line": line, "character": lines[line].index("C(" if line > first else "C =")}
            told = ide.hover(text, place)
            written = f"written in line {first + 1}: {LINES['constant']}"
            assert (told["title"], told["lines"]) == ("float(3) C", ["constant", written])
            assert ide.definition(text, place)["span"]["start"] == {"line": first, "character": 15}
            assert [each["introduces"] for each in ide.references(text, place)] == [True] + [False] * 12
            changed_text = changed(text, ide.rename(text, place, "Taps")["edits"])
            assert changed_text == text.replace("C", "Taps")
            assert (
                ide.rename(text, place, "X")["refused"]
                == f"`X` is in scope already: a tensor in line {2 - (first > 0)}"
            )
        offered = {item["label"]: item for item in ide.complete(text, {"line": first + 2, "character": 4})["items"]}
        assert offered["C"]["type"] == "tensor"
        assert (offered["f11"]["detail"], offered["f11"]["apply"]) == ("def f11(float(N) X) -> (Y)", "f11(")
        assert not ide.check(text)["diagnostics"]


def test_a_change_above_keeps_what_is_known_of_a_def():
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) }\ndef g(float(N) X) -> (Z) {\n    Y = f(X)\n    Z(i) = Y(i)\n}\n"
    first, second = pieces_of(text, "tc"), pieces_of(f"# more\n{text}", "tc")
    assert [part.text for part in first] == [part.text for part in second]
    assert [part.line(0) for part in second] == [1, 2]
    assert first[1].line(4) == 0
    assert [each["position"]["line"] for each in ide.hints(text)] == [0, 3]
    (place, call) = [each["span"]["start"] for each in ide.references(text, {"line": 0, "character": 4})]
    assert (place, call) == ({"line": 0, "character": 4}, {"line": 2, "character": 8})
    assert pieces_of("def f() -> (Y) { Y = 1 } def g() -> (Y) { Y = 1 }", "tc") is None
