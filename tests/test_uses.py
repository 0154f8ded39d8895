"""`use "kernels.tc"`: in Python, in files that use files, in what is said while somebody types; files as modules; `tc-jupyter new`."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter import ide
from tc_jupyter.cli import main
from tc_jupyter.compiler import uses
from tc_jupyter.diagnostics import SourceText, codes
from tc_jupyter.function import LIBRARY

KERNELS = "# what others use\ndef twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }\n"
CALLER = 'use "kernels.tc"\ndef f(float(N) X) -> (Y) { Y = twice(X) }\n'
X = np.arange(4, dtype=np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with `kernels.tc`, in which the process is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.tc").write_text(KERNELS)
    return tmp_path


def refused(text: str, language: str = "tc") -> str:
    with pytest.raises(tc.CompileError) as found:
        tc.compile(text, language)
    return str(found.value)


# Python and files


def test_a_text_calls_functions_of_a_file(folder):
    f = tc.compile(CALLER).f
    assert f(X).tolist() == [0, 2, 4, 6]
    (folder / "kernels.tc").unlink()  # what is compiled needs the file no more
    assert pickle.loads(pickle.dumps(f))(X).tolist() == [0, 2, 4, 6]


def test_what_is_used_is_no_function_of_the_text(folder):
    assert list(tc.compile(CALLER)) == ["f"]


def test_both_languages_use_both(folder):
    (folder / "inc.sac").write_text("double[*] inc(double[*] a) { return { iv -> a[iv] + 1.0 }; }")
    text = 'use "inc.sac"\ndef f(double(N) X) -> (Y) { Y = inc(X) }'
    assert tc.compile(text).f(X.astype(float)).tolist() == [1, 2, 3, 4]
    text = 'use "inc.sac";\ndouble[.] f(double[.] a) { return inc(inc(a)); }'
    assert tc.compile(text, "sac").f(X.astype(float)).tolist() == [2, 3, 4, 5]


def test_a_reducer_of_a_file(folder):
    (folder / "kernels.tc").write_text("reduce total(float a, float b) = a + b from 0")
    f = tc.compile('use "kernels.tc"\ndef f(float(N) X) -> (S) { S total=! X(i) }').f
    assert float(f(X)) == 6


def test_paths_are_those_of_the_file(folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "more.tc").write_text(
        'use "../kernels.tc"\ndef four(float(N) X) -> (Y) { A = twice(X)  Y = twice(A) }'
    )
    assert tc.compile('use "lib/more.tc"\ndef f(float(N) X) -> (Y) { Y = four(X) }').f(X).tolist() == [0, 4, 8, 12]
    assert tc.load("lib/more.tc").four(X).tolist() == [0, 4, 8, 12]
    # what a file uses itself is none of its functions
    assert "there is no tensor, function or def `twice`" in refused(
        'use "lib/more.tc"\ndef f(float(N) X) -> (Y) { Y = twice(X) }'
    )


def test_a_file_is_read_again_when_it_has_changed(folder):
    tc.compile(CALLER)
    (folder / "kernels.tc").write_text(KERNELS.replace("2 *", "3 *"))
    assert tc.compile(CALLER).f(X).tolist() == [0, 3, 6, 9]


def test_a_name_in_a_comment_uses_nothing(folder):
    assert tc.compile('# use "nowhere.tc"\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }').f(X).tolist() == X.tolist()
    text = '/*\nuse "nowhere.sac"\n*/\ndouble[.] f(double[.] a) { return a; }'
    assert tc.compile(text, "sac").f(X.astype(float)).tolist() == X.tolist()


def test_what_other_languages_write_is_told():
    for line in ("from kernels import twice", "import kernels"):
        assert 'use "kernels.tc"' in refused(f"{line}\ndef f(float(N) X) -> (Y) {{ Y(i) = X(i) }}")


def test_use_is_no_reserved_word():
    assert tc.compile("def f(float(use) X) -> (Y) { Y(i) = X(i) }").f(X).tolist() == X.tolist()


# what is refused


def test_a_file_that_is_missing_hides_no_call(folder):
    shown = refused(CALLER.replace("kernels", "kernel"))
    assert "error[TC680] use-missing: there is no file `kernel.tc`" in shown
    assert shown.count("error[") == 1  # `twice` may be in it


@pytest.mark.parametrize("path", ["kernels.py", "kernels", "", "..", "/etc/passwd"])
def test_a_file_that_is_no_tc_file(folder, path):
    assert "error[TC682]" in refused(f'use "{path}"\ndef f(float(N) X) -> (Y) {{ Y(i) = X(i) }}')


def test_bytes_a_folder_and_a_pipe(folder):
    (folder / "bytes.tc").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.tc").mkdir()
    os.mkfifo(folder / "pipe.tc")
    for name, code in (("bytes", "TC682"), ("folder", "TC680"), ("pipe", "TC680")):
        assert f"error[{code}]" in refused(CALLER.replace("kernels", name))


def test_mistakes_of_a_file_are_shown_where_they_are(folder):
    (folder / "kernels.tc").write_text(KERNELS.replace("2 * X(i)", "2 * X(i, j)"))
    shown = refused(CALLER)
    assert "error[TC681] use-broken: `kernels.tc` has a mistake\n --> cell:1:5" in shown
    assert " --> kernels.tc:2:43\n" in shown
    assert "2 | def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i, j) }" in shown


def test_files_that_use_each_other(folder):
    (folder / "a.tc").write_text('use "b.tc"\ndef a(float(N) X) -> (Y) { Y(i) = X(i) }')
    (folder / "b.tc").write_text('use "a.tc"\ndef b(float(N) X) -> (Y) { Y(i) = X(i) }')
    with pytest.raises(tc.CompileError) as found:
        tc.load("a.tc")
    assert "files use each other: `a.tc` -> `b.tc` -> `a.tc`" in str(found.value)
    assert "error[TC681]" in refused('use "a.tc"\ndef f(float(N) X) -> (Y) { Y = a(X) }')
    (folder / "a.tc").write_text('use "a.tc"\ndef a(float(N) X) -> (Y) { Y(i) = X(i) }')
    with pytest.raises(tc.CompileError, match="a file uses itself"):
        tc.load("a.tc")


def test_many_files_that_all_use_each_other_end(folder):
    names = [f"f{n}" for n in range(30)]
    for name in names:
        lines = "".join(f'use "{other}.tc"\n' for other in names if other != name)
        (folder / f"{name}.tc").write_text(f"{lines}def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) }}")
    assert "error[TC681]" in refused('use "f0.tc"\ndef f(float(N) X) -> (Y) { Y = f0(X) }')


def test_a_chain_of_files_has_an_end(folder):
    for n in range(120):
        (folder / f"f{n}.tc").write_text(f'use "f{n + 1}.tc"\ndef g{n}(float(N) X) -> (Y) {{ Y(i) = X(i) }}')
    assert "has a mistake" in refused('use "f0.tc"\ndef f(float(N) X) -> (Y) { Y = g0(X) }')


def test_the_innermost_mistake_of_a_chain_is_shown(folder):
    for n in range(12):
        (folder / f"f{n}.tc").write_text(f'use "f{n + 1}.tc"\ndef g{n}(float(N) X) -> (Y) {{ Y = g{n + 1}(X) }}')
    (folder / "f12.tc").write_text("def g12(float(N) X) -> (Y) { Y(i) = Z(i) }")
    shown = refused('use "f0.tc"\ndef f(float(N) X) -> (Y) { Y = g0(X) }')
    assert " --> f0.tc:1:5" in shown
    assert " --> f12.tc:1:37" in shown
    assert "there is no tensor, function or def `Z`" in shown
    assert "f8.tc:1:5" not in shown


def test_a_file_that_is_used_twice(folder):
    shown = refused('use "kernels.tc"\n' + CALLER)
    assert "error[TC207] duplicate-name: `kernels.tc` is used already\n --> cell:2:5" in shown
    assert "help: remove the line" in shown
    assert "two files" not in shown


def test_a_name_that_is_defined_twice(folder):
    shown = refused('use "kernels.tc"\ndef twice(float(N) X) -> (Y) { Y(i) = X(i) }')
    assert "error[TC207] duplicate-name: `twice` is defined here and in `kernels.tc`" in shown
    assert " --> kernels.tc:2:5" in shown
    (folder / "more.tc").write_text(KERNELS)
    shown = refused('use "kernels.tc"\nuse "more.tc"\ndef f(float(N) X) -> (Y) { Y = twice(X) }')
    assert "`twice` is defined in two files: `kernels.tc` and `more.tc`" in shown


@pytest.mark.parametrize("line", ["use 'kernels.tc'", "use kernels.tc", 'import "kernels.tc"', "include <kernels.tc>"])
def test_other_spellings_are_understood_and_told(folder, line):
    text = CALLER.replace('use "kernels.tc"', line)
    found = tc.analyze(text, used=LIBRARY.used(SourceText(text), "tc", uses.Reading(folder)))
    (said,) = found.diagnostics
    assert said.code is codes.MISPLACED_USE
    assert tc.compile(said.fix.applied(text)).f(X).tolist() == [0, 2, 4, 6]


def test_use_inside_of_a_def(folder):
    assert "`use` stands inside of a def" in refused(
        'def f(float(N) X) -> (Y) {\n  use "kernels.tc"\n  Y = twice(X)\n}'
    )


def test_a_text_that_only_uses_has_no_def(folder):
    assert "from kernels import *" in " ".join(refused('use "kernels.tc"').split())


@pytest.mark.parametrize(
    "text", ['use "\0.tc"', 'use "' + "a" * 5000 + '.tc"', 'use "~/x.tc"', 'use "kernels.tc/x.tc"']
)
def test_paths_that_are_none(folder, text):
    assert "error[TC680]" in refused(f"{text}\ndef f(float(N) X) -> (Y) {{ Y(i) = X(i) }}")


def test_layout_keeps_what_is_used():
    text = 'use   "a.tc"  # why\nuse "b.tc"\nconst float C = 1\ndef f(float(N) X) -> (Y) {\n    Y(i) = C * X(i)\n}\n'
    made = ide.format_text(text)["text"]
    assert made == text.replace("use   ", "use ").replace("const", "\nconst").replace("def", "\ndef")
    sac = 'use "a.tc";\nuse Array: all;\ndouble f(double a) { return a; }\n'
    assert ide.format_text(sac, "sac")["text"].startswith('use "a.tc";\nuse Array: all;\n\ndouble f')


# what is said while somebody types


def asked(text: str, folder: Path, language: str = "tc"):
    files = ide.look(text, language, folder)
    return files, ide.check(text, language, known=files.used.functions, used=files)


def test_answers_of_an_editor(folder):
    files, found = asked(CALLER, folder)
    assert found["diagnostics"] == []
    assert found["functions"][0]["outputs"][0]["shape"] == ["N"]
    known, place = files.used.functions, {"line": 1, "character": CALLER.split("\n")[1].index("twice") + 1}
    told = ide.hover(CALLER, place, "tc", known, files)
    assert told["lines"] == ["defined in `kernels.tc`, line 2"]
    there = ide.definition(CALLER, place, "tc", known, files)
    assert there["file"] == str(folder / "kernels.tc")
    assert there["in_file"]["start"] == {"line": 1, "character": 4}
    offers = ide.complete(CALLER, {"line": 1, "character": place["character"] + 2}, "tc", known, files)
    assert "twice" in [item["label"] for item in offers["items"]]
    assert ide.rename(CALLER, place, "thrice", "tc", known) is None


def test_answers_at_the_path(folder):
    files = ide.look(CALLER, "tc", folder)
    path = {"line": 0, "character": 8}
    assert ide.hover(CALLER, path, "tc", {}, files)["lines"] == ["twice(float32(N) X) -> (float32(N) Y)"]
    assert ide.definition(CALLER, path, "tc", {}, files)["file"] == str(folder / "kernels.tc")
    (folder / "other.tc").write_text("")
    offers = ide.complete('use "k', {"line": 0, "character": 6}, "tc", {}, ide.look('use "k', "tc", folder))
    assert [item["label"] for item in offers["items"]] == ["kernels.tc"]


def test_only_files_below_the_folder_are_read_while_somebody_types(folder, monkeypatch):
    inside = folder / "notebook"
    inside.mkdir()
    (inside / "link.tc").symlink_to(folder / "kernels.tc")
    read: list[Path] = []
    for name in ("read_own", "read_text"):
        real = getattr(uses, name)
        monkeypatch.setattr(uses, name, lambda path, most, real=real: (read.append(path), real(path, most))[1])
    library = uses.Library(LIBRARY._make)
    monkeypatch.setattr("tc_jupyter.ide.files.LIBRARY", library)
    for path in (
        "../kernels.tc",
        "link.tc",
        str(folder / "kernels.tc"),
        "/etc/passwd",
        "../../../../etc/shadow.tc",
        "nowhere.tc",
    ):
        _, found = asked(CALLER.replace("kernels.tc", path), inside)
        assert [item["code"] for item in found["diagnostics"]] in (["TC685"], ["TC682"], ["TC680"]), path
    assert read == [inside / "nowhere.tc"]
    # a person has run it
    library.used(SourceText(CALLER), "tc", uses.Reading(folder))
    assert asked(CALLER.replace("kernels", "../kernels"), inside)[1]["diagnostics"] == []


def test_a_large_file_is_not_read_while_somebody_types(folder):
    (folder / "large.tc").write_text(KERNELS + "#" * uses.LARGEST_LOOKED_AT)
    text = CALLER.replace("kernels", "large")
    assert [item["code"] for item in asked(text, folder)[1]["diagnostics"]] == ["TC680"]
    assert tc.compile(text).f(X).tolist() == [0, 2, 4, 6]


def test_pieces_say_what_the_whole_text_says(folder):
    text = CALLER + "def g(float(N) X) -> (Y) { Y(i) = X(i, j) }\ndef h(float(N) X) -> (Y) { A = f(X)  Y = twice(A) }\n"
    files, found = asked(text, folder)
    assert ide.pieces.pieces_of(text, "tc") is not None
    whole = tc.analyze(text, used=files.used).to_json()
    assert found["diagnostics"] == whole["diagnostics"]
    assert found["functions"] == whole["functions"]
    # a change of the file changes the answer
    (folder / "kernels.tc").write_text(KERNELS.replace("float(N) X", "float(N, M) X"))
    assert asked(text, folder)[1]["diagnostics"][0]["code"] == "TC681"


def test_mistakes_about_files_in_a_text_that_is_cut(folder):
    more = 'def g(float(N) X) -> (Y) {\n    use "kernels.tc"\n    Y(i) = X(i) }\n# }\nuse "kernels.tc"\n'
    text = CALLER + more + KERNELS
    files, found = asked(text, folder)
    assert ide.pieces.pieces_of(text, "tc") is not None
    assert found["diagnostics"] == tc.analyze(text, used=files.used).to_json()["diagnostics"]
    told = [(item["code"], item["span"]["start"]["line"]) for item in found["diagnostics"]]
    assert ("TC684", 3) in told
    assert ("TC684", 6) not in told
    assert ("TC207", 8) in told


def test_colours_of_pieces_are_those_of_the_whole_text(folder, monkeypatch):
    text = (
        CALLER + "def g(float(N, M) X) -> (Y) { Y(i) +=! X(i, j) where k = i }\ndef h(float(N) X) -> (Y) { Y = f(X) }\n"
    )
    known = ide.look(text, "tc", folder).used.functions
    by_pieces = ide.colours(text, "tc", known)
    monkeypatch.setattr(ide.outline, "pieces_of", lambda text, language: None)
    assert by_pieces == ide.colours(text, "tc", known)


def test_many_defs_below_a_use_are_asked_about_one_by_one(folder):
    many = "".join(f"def f{n}(float(N) X) -> (Y) {{ A = twice(X)  Y(i) = {n} * A(i) }}\n" for n in range(200))
    text = 'use "kernels.tc"\n' + many
    files = ide.look(text, "tc", folder)
    assert len(ide.hints(text, "tc", files.used.functions)) == 200
    assert ide.hints(text, "tc", files.used.functions)[0]["position"]["line"] == 1


# modules of Python


@pytest.fixture
def importing(folder, monkeypatch):
    """A folder in which Python looks for modules."""
    monkeypatch.syspath_prepend(str(folder))
    import tc_jupyter.importer

    assert tc_jupyter.importer
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["a" * 300, "locked_away"])
def test_folders_that_cannot_be_looked_into_have_no_modules(importing, monkeypatch, name):
    locked = importing / "locked"
    locked.mkdir(mode=0)
    monkeypatch.syspath_prepend(str(locked))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


def test_a_file_is_a_module(importing):
    (importing / "mine.tc").write_text(CALLER)
    mine = importlib.import_module("mine")
    assert mine.f(X).tolist() == [0, 2, 4, 6]
    assert mine.__all__ == ["f"]
    assert mine.__file__ == str(importing / "mine.tc")
    (importing / "mine.tc").write_text(CALLER.replace(" f(", " g("))
    assert importlib.reload(mine) is mine
    assert (mine.g(X).tolist(), hasattr(mine, "f")) == ([0, 2, 4, 6], False)


def test_mistakes_of_a_module_are_messages(importing):
    (importing / "wrong.tc").write_text(KERNELS.replace("X(i)", "X(i, j)"))
    with pytest.raises(tc.CompileError, match=r"wrong\.tc:2:43"):
        importlib.import_module("wrong")
    (importing / "bytes_.tc").write_bytes(b"\xff")
    with pytest.raises(ImportError, match="cannot be read"):
        importlib.import_module("bytes_")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module")


def test_modules_of_python_come_first_and_packages_have_files(importing):
    (importing / "both.py").write_text("x = 1")
    (importing / "both.tc").write_text(KERNELS)
    assert importlib.import_module("both").x == 1
    (importing / "pack").mkdir()
    (importing / "pack" / "__init__.py").write_text("")
    (importing / "pack" / "inc.sac").write_text("double[*] inc(double[*] a) { return { iv -> a[iv] + 1.0 }; }")
    assert importlib.import_module("pack.inc").inc(X.astype(float)).tolist() == [1, 2, 3, 4]


# the command line


def test_commands_follow_what_a_file_uses(folder, capsys):
    (folder / "f.tc").write_text(CALLER)
    assert main(["check", "f.tc"]) == 0
    assert main(["emit", "f.tc", "--kind", "c"]) == 0
    (folder / "kernels.tc").unlink()
    assert main(["check", "f.tc"]) == 1
    assert "TC680" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["first.tc", "first.sac"])
def test_a_new_file_is_right_as_it_is(folder, capsys, name):
    assert main(["new", name]) == 0
    assert main(["check", name]) == 0
    assert main(["format", name, "--check"]) == 0
    assert main(["new", name]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["new", "first.py"]) == 2
