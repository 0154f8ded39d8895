"""Every command of `tc-jupyter`, with good and bad input."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tc_jupyter as tc
from tc_jupyter import cli

ROOT = Path(__file__).parents[1]
GOOD = "def conv(float(N) B, float(K) W) -> (A) { A(i) +=! B(i + k) * W(k) }\n"
BAD = "def f(float(N, K) A) -> (B) { B(i) = A(i, k) }\n"
DATA = "def look(float(V) L, int32(B) I) -> (O) { O(b) = L(I(b)) }\n"


@pytest.fixture
def stdin(monkeypatch):
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))

    return give


@pytest.fixture
def run(capsys):
    """`run("check", ...)` -> (exit status, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            status = cli.main(arguments)
        except SystemExit as stop:
            status = stop.code
        answer = capsys.readouterr()
        return status, answer.out, answer.err

    return call


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "conv.tc"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


# check


def test_check_shows_signature_ranges_reasons_and_conditions(run, good):
    status, out, err = run("check", good)
    assert status == 0
    assert err == ""
    assert "conv(float32(N) B, float32(K) W) -> (float32 A(N - K + 1))" in out
    assert "0 <= i < N - K + 1  output     0 <= i + k < N  (B); round 2" in out
    assert "checked at call: K <= N + 1  (range of `i`)" in out


def test_check_reads_standard_input(run, stdin):
    stdin(GOOD)
    assert "0 <= k < K" in run("check", "-")[1]


def test_check_reports_mistakes_with_the_name_of_the_file(run, tmp_path):
    path = tmp_path / "f.tc"
    path.write_text(BAD, encoding="utf-8")
    status, out, _ = run("check", str(path))
    assert status == 1
    assert "error[TC204]" in out
    assert f"--> {path}:1:36" in out


def test_check_json_is_the_analysis(run, good):
    status, out, _ = run("check", good, "--json")
    assert status == 0
    assert json.loads(out) == tc.analyze(GOOD).to_json()


def test_check_allow_and_strict(run, stdin):
    stdin(DATA)
    assert "TC323" in run("check", "-")[1]
    stdin(DATA)
    assert "TC323" not in run("check", "-", "--allow", "TC323")[1]
    sizes = "def f(float(N) X) -> (Y) { Y(i) = X(i) + X(3) }"
    stdin(sizes)
    assert run("check", "-")[0] == 0
    stdin(sizes)
    status, out, _ = run("check", "-", "--strict")
    assert (status, "error[TC322]" in out) == (1, True)


def test_a_code_that_no_message_has_cannot_be_allowed(run, stdin):
    stdin(GOOD)
    said = "tc-jupyter: --allow: there is no message 'TC999'"
    status, out, err = run("check", "-", "--allow", "TC999")
    assert (status, out, err.startswith(said)) == (2, "", True)


def test_a_byte_order_mark_is_no_part_of_the_text(run, stdin, tmp_path):
    path = tmp_path / "f.tc"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert run("check", str(path))[0] == 0
    stdin("\ufeff" + GOOD)
    assert run("check", "-")[0] == 0


def test_emit_gives_every_def_its_own_sizes(run, stdin):
    stdin("def f(float(N) X) -> (Y) { Y(i) = X(i) }\ndef g(float(M) X) -> (Y) { Y(i) = X(i) }")
    status, out, _ = run("emit", "-", "--kind", "loops", "--size", "N=5")
    assert (status, out.count("kernel") >= 2) == (0, True)


@pytest.mark.parametrize("name", ["missing.tc", "."])
def test_a_file_that_cannot_be_read(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("check", name)
    assert status == 2
    assert out == ""
    assert err.startswith(f"tc-jupyter: cannot read {name}: ")


@pytest.mark.parametrize("text", [b"", b"\x00", b"def", b"(" * 2000, "déf f() {}".encode()])
def test_any_text_gives_messages(run, tmp_path, text):
    path = tmp_path / "f.tc"
    path.write_bytes(text)
    status, out, _ = run("check", str(path))
    assert status == 1
    assert "error[TC1" in out


# emit


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("loops", "for"), ("cuda", "__global__"), ("llvm", "define"), ("asm", "ret")],
)
def test_emit(run, good, kind, expected):
    status, out, err = run("emit", good, "--kind", kind)
    assert (status, err) == (0, "")
    assert expected in out


def test_emit_stops_after_a_rewrite(run, good):
    pytest.importorskip("llvmlite")
    _, whole, _ = run("emit", good, "--kind", "passes")
    status, out, _ = run("emit", good, "--stop-after", "strip")
    titles = [re.split("[:\n]", part)[0] for part in out.split("-- ")[1:]]
    assert status == 0
    assert whole.startswith(out.rstrip())
    assert titles[0] == "lowered"
    assert titles[-1] in ("find strips", "strip")
    status, _, said = run("emit", good, "--stop-after", "stripe")
    assert (status, "no rewrite 'stripe'; there are lowered, whole tiles" in said) == (2, True)


def test_emit_one_def_of_several(run, stdin):
    stdin(GOOD + DATA)
    status, out, _ = run("emit", "-", "--def", "look", "--size", "V=3", "--size", "B=4")
    assert status == 0
    assert "look" in out
    assert "conv" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--def", "nothing"], "no def 'nothing'; there are conv"),
        (["--size", "N"], "--size 'N': expected NAME=INTEGER"),
        (["--size", "N=x"], "expected NAME=INTEGER"),
        (["--size", "N=-3"], "a size is not negative"),
        (["--size", f"N={'9' * 5000}"], "a size has at most 64 bits"),
        (["--size", "N=3,K=2"], "expected NAME=INTEGER"),
        (["--size", "M=3"], "no def has a size 'M'; there are K, N"),
        (["--kind", "fortran"], "invalid choice: 'fortran'"),
    ],
)
def test_emit_refuses(run, good, arguments, said):
    status, out, err = run("emit", good, *arguments)
    assert status == 2
    assert out == ""
    assert said in err


def test_scalars_are_given_beside_sizes(run, stdin, tmp_path):
    """Negative ones, too, if their type has such numbers."""
    text = "def f(float(N) X, int8 s, uint8 len) -> (Y) { Y(i) = X(i + s) where i in 0:len - s }  # allow TC322"
    given = ("--size", "N=10", "--size", "s=-2", "--size")
    stdin(text)
    assert run("emit", "-", "--kind", "loops", *given, "len=5")[0] == 1  # element -2 is read
    stdin(text)
    assert run("emit", "-", "--kind", "loops", "--size", "N=10", "--size", "s=2", "--size", "len=5")[0] == 0
    stdin(text)
    status, _, err = run("emit", "-", *given, "len=256")
    assert (status, "len=256: `uint8` holds 0 to 255" in err) == (2, True)
    stdin(text)
    status, _, err = run("export", "-", "--to", str(tmp_path / "x"), "--like", "N=9,s=-129,len=1")
    assert (status, "--like: s=-129: `int8` holds -128 to 127" in err) == (2, True)


def test_emit_of_open_ranks_says_where_to_write_them(run, stdin):
    text = "double[{}] twice(double[{}] a) {{ return {{ iv -> a[iv] * 2.0 | iv < shape(a) }}; }}"
    stdin(text.format("*", "*"))
    status, out, err = run("emit", "-", "--language", "sac")
    assert (status, out) == (1, "")
    assert "`double[.] a`" in err
    stdin(text.format(".", "."))
    assert run("emit", "-", "--language", "sac")[0] == 0


def test_check_of_a_def_without_a_readable_statement_shows_its_messages_only(run, stdin):
    stdin("def g(float(N) X) -> (Y) { Y(i) = Z(i) }")
    status, out, _ = run("check", "-")
    assert status == 1
    assert out.startswith("error[TC201]")


def test_emit_of_a_text_with_mistakes_shows_them(run, stdin):
    stdin(BAD)
    status, out, err = run("emit", "-")
    assert (status, out) == (1, "")
    assert "error[TC204]" in err


def test_emit_of_a_kind_that_does_not_exist_for_the_def(run, good):
    status, _, err = run("emit", good, "--kind", "rewrites")
    assert status == 1
    assert "rewrites" in err
    assert "Traceback" not in err


# explain, doctor, lab, bench, gpu-check


@pytest.mark.parametrize("code", ["TC204", "tc204", "reduction-missing"])
def test_explain(run, code):
    status, out, _ = run("explain", code)
    assert status == 0
    assert out.startswith("## TC204")


def test_explain_an_unknown_code(run):
    status, _, err = run("explain", "TC999")
    assert status == 2
    assert "there is no message 'TC999'" in err


def test_doctor(run):
    status, out, _ = run("doctor")
    assert status == 0
    assert out.startswith("engine: ")
    assert "numpy" in out


def test_lab_makes_a_copy_and_keeps_changes(run, tmp_path):
    folder = tmp_path / "new" / "folder"
    status, out, _ = run("lab", "--folder", str(folder), "--dry-run")
    copy = folder / "quickstart.ipynb"
    assert status == 0
    assert out.strip().endswith(f"-m jupyterlab {copy}")
    assert copy.read_bytes() == (ROOT / "examples" / "quickstart.ipynb").read_bytes()
    copy.write_text("mine", encoding="utf-8")
    run("lab", "--folder", str(folder), "--dry-run")
    assert copy.read_text(encoding="utf-8") == "mine"


def test_a_folder_where_no_copy_can_be_made(run, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    for folder in (file, file / "below", *([Path("/proc/x")] if Path("/proc").exists() else [])):
        status, _, err = run("lab", "--folder", str(folder), "--dry-run")
        assert status == 2
        assert err.startswith(f"tc-jupyter: --folder {folder}: no copy can be made there: ")
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", ["check", "emit"])
def test_a_file_that_is_no_text_or_does_not_end(run, tmp_path, command):
    path = tmp_path / "picture.tc"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    status, _, err = run(command, str(path))
    assert (status, err) == (2, f"tc-jupyter: cannot read {path}: it is no text in UTF-8 (byte 0)\n")
    book = tmp_path / "lesson.ipynb"
    book.write_text("{}")
    status, _, err = run(command, str(book))
    assert status == 2
    assert "lesson.ipynb is a notebook" in err
    path.write_text(GOOD.replace(" B", "\r\n B"), encoding="utf-8", newline="")
    assert run(command, str(path))[0] == 0
    if Path("/dev/zero").exists():
        status, _, err = run(command, "/dev/zero")
        assert (status, err) == (2, "tc-jupyter: cannot read /dev/zero: it has more than 1,048,576 bytes\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(run, tmp_path):
    pipe = tmp_path / "pipe.tc"
    os.mkfifo(pipe)
    status, _, err = run("check", str(pipe))
    assert (status, err) == (
        2,
        f"tc-jupyter: cannot read {pipe}: it is a pipe with a name, which nobody may write to\n",
    )
    with pytest.raises(OSError, match="it is a pipe"):
        tc.load(pipe)


def test_a_report_that_cannot_be_written_is_refused_before_it_is_measured(run, tmp_path):
    status, _, err = run("bench", "--json", str(tmp_path / "missing" / "report.json"))
    assert status == 2
    assert "report.json: it cannot be written: " in err


def test_an_option_is_refused_before_a_file_is_read(run, tmp_path):
    status, _, err = run("check", str(tmp_path / "nothing.tc"), "--allow", "TC999")
    assert status == 2
    assert "there is no message 'TC999'" in err


@pytest.mark.parametrize("command", ["check", "emit", "explain", "bench", "gpu-check", "doctor", "lab"])
def test_every_command_has_help(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    assert out.startswith(f"usage: tc-jupyter {command}")


def test_no_command_and_a_wrong_one(run):
    status, out, _ = run()
    assert status == 2
    assert "check" in out
    assert run("nonsense")[0] == 2


def test_a_reader_that_goes_away_is_no_error(good):
    code = "import sys; sys.argv[1:] = ['explain', 'TC204']; from tc_jupyter.cli import main; raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


# format


def test_format_writes_a_file_in_place_and_checks_without_writing(run, tmp_path):
    path = tmp_path / "narrow.tc"
    path.write_text("def f(float(N) X) -> (Y) {\nY(i)=X(i)\n}\n", encoding="utf-8")
    assert run("format", str(path), "--check")[0] == 1
    assert "Y(i)=X(i)" in path.read_text()
    assert run("format", str(path)) == (0, "", "")
    laid_out = path.read_text()
    assert laid_out == "def f(float(N) X) -> (Y) {\n    Y(i) = X(i)\n}\n"
    assert run("format", str(path), "--check")[0] == 0
    assert run("format", str(path))[0] == 0
    assert path.read_text() == laid_out


def test_format_leaves_a_broken_file_alone(run, tmp_path, stdin):
    path = tmp_path / "broken.tc"
    path.write_text("def f(float(N) X -> (Y) { Y(i) = X(i) }", encoding="utf-8")
    status, out, err = run("format", str(path))
    assert (status, out) == (2, "")
    assert "stays as it is: the text has a syntax error in line 1" in err
    assert path.read_text() == "def f(float(N) X -> (Y) { Y(i) = X(i) }"
    stdin(GOOD)
    assert run("format", "-") == (0, "def conv(float(N) B, float(K) W) -> (A) {\n    A(i) +=! B(i + k) * W(k)\n}\n", "")


def test_export_says_which_calls_are_none(run, good, tmp_path):
    to = str(tmp_path / "out")
    assert run("export", good, "--to", to, "--like", "N")[2].startswith("tc-jupyter: --like 'N': expected NAME=INTEGER")
    assert "--like: N=" in run("export", good, "--to", to, "--like", f"N={2**70},K=3")[2]
    assert not Path(to).exists()
