"""`%%tc`, `%%sac` and `%tc` in a shell of IPython."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from IPython.core.error import UsageError

import tc_jupyter as tc
from tc_jupyter.notebook.options import OPTIONS, SUBCOMMANDS
from tc_jupyter.notebook.report import Report
from tests.literate import DOCS

CONV = "%%tc\ndef conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }"
WRONG = "%%tc\ndef f(float(N, K) A) -> (B) { B(i) = A(i, k) }"
LOOSE = "%%tc {}\ndef f(float(N) X) -> (Y) {{ Y(i) = X(i) + X(3) }}"


# cells


def test_a_cell_defines_functions(session):
    report = session(CONV)
    assert isinstance(report, Report)
    assert list(report.functions) == ["conv"]
    b, w = np.arange(5, dtype=np.float32), np.ones(2, np.float32)
    session.names.update(b=b, w=w)
    assert np.array_equal(session("conv(b, w)"), np.convolve(b, w, "valid"))


def test_the_text_of_the_value_is_the_card(session):
    report = session(CONV)
    assert session.out.removeprefix("Out[0]: ").strip() == repr(report)
    assert "0 <= i < N - K + 1" in session.out
    assert "engine: " in session.out


def test_no_red_letters_on_the_red_ground_of_a_front_end(session, monkeypatch):
    session.shell.colors = "linux"
    red, bold = "\x1b[1;31merror[TC204]", "\x1b[1merror[TC204]"
    shown = session.fails(WRONG)
    assert red in shown
    monkeypatch.setattr(session.shell, "kernel", object(), raising=False)
    shown = session.fails(WRONG)
    assert bold in shown
    assert "\x1b[1;31m" not in shown


def test_a_mistake_raises_with_messages_and_without_a_traceback(session):
    shown = session.fails(WRONG)
    assert "error[TC204]" in shown
    assert "help: replace `=` by `+=!`" in shown
    assert "Traceback" not in shown
    assert ".py" not in shown
    assert "f" not in session.names
    with pytest.raises(tc.CompileError):
        session(WRONG)


def test_the_full_traceback_comes_back(session):
    session("%config TcMagics.short_errors = False")
    assert "Traceback" in session.fails(WRONG)


def test_every_mistake_is_reported(session):
    shown = session.fails("%%tc\ndef f(float(N, K) A) -> (B) {\n  B(i) = A(i, k)\n  C(i) = unknown(i)\n}")
    assert "TC204" in shown
    assert "TC201" in shown


def test_check_defines_nothing(session):
    report = session(CONV.replace("%%tc", "%%tc --check"))
    assert "conv" not in session.names
    assert "N - K + 1" in repr(report)


def test_strict_and_allow(session):
    assert session(LOOSE.format("")).analysis.diagnostics
    assert "error[TC322]" in session.fails(LOOSE.format("--strict"))
    allowed = session(LOOSE.format("--allow TC322 --allow tc329"))
    assert not allowed.analysis.diagnostics
    session("%config TcMagics.strict = True")
    assert "error[TC322]" in session.fails(LOOSE.format(""))


def test_quiet_shows_messages_only(session):
    assert session(CONV.replace("%%tc", "%%tc -q")) is None
    assert session.out == ""
    assert "conv" in session.names
    assert session(LOOSE.format("--quiet")) is None
    assert session.out.startswith("warning[TC322]")
    assert "Out[" not in session.out


def test_target(session):
    report = session(CONV.replace("%%tc", "%%tc --target interpreter"))
    assert report.engine.startswith("interpreter")
    assert session.names["conv"].options.target == "interpreter"
    session('%config TcMagics.target = "cpu"')
    assert session(CONV).engine.startswith("cpu")
    session('%config TcMagics.target = "abacus"')
    assert session("%config TcMagics.target") == "cpu"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--nonsense", "unrecognized arguments: --nonsense"),
        ("--target abacus", "invalid choice: 'abacus'"),
        ("--allow", "expected one argument"),
        ("--allow TC999", "--allow: there is no message 'TC999'"),
        ("'", "No closing quotation"),
    ],
)
def test_a_wrong_option_is_one_line(session, line, said):
    shown = session.fails(f"%%tc {line}\ndef f(float(N) X) -> (Y) {{ Y(i) = X(i) }}")
    assert said in shown
    assert "Traceback" not in shown
    assert "f" not in session.names


@pytest.mark.parametrize("cell", ["%%tc", "%%sac", "%%tc\n"])
def test_an_empty_cell_says_so(session, cell):
    with pytest.raises(UsageError):
        session(cell)
    assert "empty" in session.err


@pytest.mark.parametrize("cell", ["%%tc\n\n", "%%tc\n# only a comment\n"])
def test_a_cell_without_a_def(session, cell):
    assert "error[TC111]" in session.fails(cell)


def test_help_shows_every_option_and_subcommand(session):
    session("%%tc --help\n#")
    assert all(option in session.out for option in OPTIONS)
    session("%tc --help")
    assert all(option in session.out for option in OPTIONS)
    assert all(name in session.out for name in SUBCOMMANDS)
    for question in ("%%tc?", "%tc?"):
        session(question)
        assert all(option in session.out for option in OPTIONS)
        assert all(name in session.out for name in SUBCOMMANDS)
    session("%%sac?")
    assert "--strict" in session.out


def test_text_with_dollars_and_braces_is_left_alone(session):
    session.names["N"] = "expanded"
    assert "unknown-character" in session.fails("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) + $N }")
    report = session("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) } # {N}")
    assert "{N}" in report.analysis.source.text


def test_a_value_that_is_replaced_is_said(session):
    session("conv = 3")
    session(CONV)
    assert "`conv` was a value of type `int`" in session.out
    session(CONV)
    assert "was a value" not in session.out


def test_a_name_of_python_is_told(session):
    session("%%tc -q\ndef print(float(N) X) -> (Y) { Y(i) = X(i) }")
    assert "after `del print` it is that of Python again" in session.out
    session("%%tc -q\ndef print(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    assert "del print" not in session.out


def test_a_cell_may_call_functions_of_earlier_cells(session):
    session("%%tc\ndef twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    report = session("%%tc\ndef four(float(N) X) -> (Y) {\n  H = twice(X)\n  Y(i) = 2 * H(i)\n}")
    session.names["x"] = np.arange(3, dtype=np.float32)
    assert session("four(x)").tolist() == [0, 4, 8]
    again = pickle.loads(pickle.dumps(report))
    assert again.functions["four"](session.names["x"]).tolist() == [0, 4, 8]


def test_a_def_with_a_name_that_is_no_python_name(session):
    session("%%tc\ndef 2fc(float(N) X) -> (Y) { Y(i) = X(i) }")
    assert "_2fc" in session.names
    session("%%tc\ndef g(float(N) X) -> (Y) {\n  H = 2fc(X)\n  Y(i) = H(i)\n}")
    session("%tc list")
    assert "2fc(" in session.out


# other magics around the cell


def test_time_gives_the_value_back(session):
    assert isinstance(session(f"%%time\n{CONV}"), Report)
    assert "Wall time" in session.out
    assert "conv" in session.names


def test_timeit(session):
    session(f"%%timeit -n1 -r1\n{CONV}")
    assert "loop" in session.out
    assert "conv" in session.names


def test_capture(session):
    session(f"%%capture shown\n{LOOSE.format('-q')}")
    assert session.out == ""
    assert "TC322" in session.names["shown"].stdout


def test_interrupting_a_cell_leaves_nothing_behind(session, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tc_jupyter.notebook.magic.analyze", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session(CONV)
    assert "conv" not in session.names


# calls


def test_a_failed_call_shows_the_line_of_the_user_and_the_message(session):
    session(CONV)
    session.names.update(b=np.zeros(2, np.float32), w=np.zeros(5, np.float32), np=np)
    shown = session.fails("def mine():\n    return conv(b, w)\nmine()")
    assert "return conv(b, w)" in shown
    assert "TC602" in shown
    assert "K = 5, N = 2" in shown
    assert "function.py" not in shown
    assert "definition.py" not in shown
    session("%config TcMagics.short_errors = False")
    assert "function.py" in session.fails("conv(b, w)")


def test_a_call_error_looks_as_usual_after_unloading(session):
    session(CONV)
    session("%unload_ext tc_jupyter")
    session.names["b"] = np.zeros(2, np.float32)
    assert "function.py" in session.fails("conv(b)")


def test_the_value_of_a_function_is_its_card(session):
    session(CONV + "\ndef other(float(N) X) -> (Y) { Y(i) = X(i) + X(3) }")
    session("conv")
    assert "0 <= i < N - K + 1" in session.out
    assert "other" not in session.out
    bundle, _ = session.shell.display_formatter.format(session.names["other"])
    assert set(bundle) >= {"text/plain", "text/html", "application/vnd.tc-jupyter.v1+json"}
    assert "TC322" in bundle["text/html"]


# the line magic


def test_status(session):
    session("%tc")
    assert "functions: none yet" in session.out
    session(CONV)
    session("%tc")
    for word in ("engine:", "front end:", "functions: conv", "cache:", *SUBCOMMANDS):
        assert word in session.out


def test_list_and_inspect(session):
    session("%tc list")
    assert "no functions yet" in session.out
    session(CONV)
    session("conv")
    session("alias = conv")
    session("%tc list")
    assert session.out.splitlines() == [
        "conv(float32(N) B, float32(K) W) -> (float32(N - K + 1) A)",
        "alias = conv(float32(N) B, float32(K) W) -> (float32(N - K + 1) A)",
    ]
    assert "0 <= k < K" in repr(session("%tc inspect conv"))


def test_source(session):
    session(CONV)
    session("%tc source conv")
    assert "__global__" in session.out
    session("%tc source conv loops N=100 K=3")
    assert "for" in session.out


def test_bench(session):
    session(CONV)
    session.names["np"] = np
    session('%tc bench conv np.ones(99,"f4") np.ones(3,"f4")')
    assert "median" in session.out
    assert "Benchmark(" not in session.out


def test_cache(session, tmp_path, monkeypatch):
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path / "cache"))
    session(CONV)
    session.names["b"] = np.ones(3, np.float32)
    session("conv(b, b)")
    session("%tc cache")
    assert str(tmp_path) in session.out
    assert not session.out.startswith("0 files")
    session("%tc cache --clear")
    assert not session.out.startswith("0 files")
    session("%tc cache")
    assert session.out.startswith("0 files")
    monkeypatch.setenv("TC_JUPYTER_CACHE", "off")
    session("%tc cache")
    assert session.out.strip() == "off"


def test_explain(session):
    session("%tc explain TC204")
    assert session.out.startswith("## TC204")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "no subcommand 'nonsense'"),
        ("inspect", "needs the name of a function; there are: conv"),
        ("inspect nothing", "'nothing' is no function"),
        ("source conv fortran", "no kind 'fortran'"),
        ("source conv cuda N=x", "expected NAME=INTEGER"),
        ("source conv c N=--5", "expected NAME=INTEGER"),
        ("source conv rewrites", "rewrites"),
        ("bench conv nothing", "'nothing'"),
        ("bench conv ((", "'(('"),
        ("cache --empty", "takes nothing but --clear"),
        ("explain", "needs one code"),
        ("explain TC999", "there is no message 'TC999'"),
    ],
)
def test_a_wrong_line_is_one_line(session, line, said):
    session(CONV)
    with pytest.raises(UsageError):
        session(f"%tc {line}")
    assert session.err.startswith("UsageError: ")
    assert said in session.err
    assert len(session.err.strip().splitlines()) == 1


# loading


def counts(shell):
    matchers = [m for m in shell.Completer.custom_matchers if getattr(m, "matcher_identifier", "") == "tc_jupyter"]
    settings = [c for c in shell.configurables if type(c).__name__ == "TcMagics"]
    return len(matchers), len(settings)


def test_loading_prints_nothing_and_reloading_doubles_nothing(session):
    assert (session.out, session.err) == ("", "")
    assert counts(session.shell) == (1, 1)
    session(CONV)
    for cell in (
        "%reload_ext tc_jupyter",
        "%load_ext tc_jupyter",
        "import tc_jupyter; tc_jupyter.load_ipython_extension(get_ipython())",
    ):
        session(cell)
        assert counts(session.shell) == (1, 1)
    session("%tc list")
    assert session.out.startswith("conv(")


def test_unloading_takes_everything_back(session):
    session(CONV)
    session("%unload_ext tc_jupyter")
    assert counts(session.shell) == (0, 0)
    assert "not found" in session.fails(CONV)
    assert "not found" in session.fails("%tc list")
    bundle, _ = session.shell.display_formatter.format(session.names["conv"])
    assert set(bundle) == {"text/plain"}
    session("%unload_ext tc_jupyter")
    session("%load_ext tc_jupyter")
    assert isinstance(session(CONV), Report)


def test_autoreload(session):
    session("%load_ext autoreload")
    session("%autoreload 2")
    session(CONV)
    session.names["b"] = np.ones(3, np.float32)
    assert session("conv(b, b)").tolist() == [3]
    assert isinstance(session(CONV), Report)
    session("%tc list")
    assert session.out.startswith("conv(")


# views


def test_views_refuse_politely(session):
    with pytest.raises(TypeError, match="not a int"):
        tc.view(3)


# the other language


def test_a_function_whose_ranks_are_known_at_the_call(session):
    report = session("%%sac\nfloat[*] inc(float[*] A) { return { iv -> A[iv] + 1.0f }; }")
    assert "float[*] inc(float[*] A)\n  demands A: value\n  ranks and ranges are known at the call" in repr(report)
    assert "with-loops" in report.bundle()["text/html"]
    session.names["a"] = np.zeros((2, 3), np.float32)
    assert session("inc(a)").tolist() == [[1, 1, 1], [1, 1, 1]]
    again = pickle.loads(pickle.dumps(report))
    assert again.functions["inc"](session.names["a"]).shape == (2, 3)
    shown = session("%tc inspect inc")
    assert "A_0" in repr(shown)
    assert "__global__" in shown.bundle()["text/html"]


def test_a_mistake_in_the_other_language(session):
    shown = session.fails("%%sac\nfloat[*] bad(float[*] A) { return { iv -> B[iv] }; }")
    assert "error[TC201]" in shown
    assert "Traceback" not in shown


# the page about Python


def test_the_cells_of_the_python_page_run(bare_shell, session):
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    load, cell = re.findall(r"^```ipython\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert load == "%load_ext tc_jupyter\n"
    session(load)
    session(cell)
    assert session.names["scale"](np.ones(2, np.float32), 3).tolist() == [3, 3]
    assert all(f"`--{word}" in page for word in ("target", "strict", "allow", "check", "help"))
    assert all(f"%tc {word}" in page for word in SUBCOMMANDS)


REFUSED = 's = f.schedule()\ns.split("Y", "i", 0)'


def test_a_refused_schedule_shows_the_message_alone(session):
    session("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    shown = session.fails(REFUSED)
    assert shown.lstrip().startswith("error[TC405] bad-factor")
    assert "help: give one of `factor` and `nparts`" in shown
    assert ".py" not in shown
    assert "Traceback" not in shown
    session("%config TcMagics.short_errors = False")
    assert "primitives.py" in session.fails(REFUSED)


def test_a_refused_schedule_shows_the_message_alone_without_the_extension(session):
    session("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }")
    session("%unload_ext tc_jupyter")
    shown = session.fails(REFUSED)
    assert shown.lstrip().startswith("error[TC405] bad-factor")
    assert ".py" not in shown
