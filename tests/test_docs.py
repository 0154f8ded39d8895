"""The reference pages agree with the package; their programs are run by `test_cases.py`."""

from __future__ import annotations

import inspect
import re

import pytest

import tc_jupyter as tc
from tc_jupyter.diagnostics import codes
from tc_jupyter.program.expr import DType
from tc_jupyter.program.functions import BORDERS, TC_FUNCTIONS
from tc_jupyter.schedule import Schedule
from tests.literate import DOCS
from tests.prose import long_sentences

PAGES = sorted(DOCS.glob("*.md"))
PYTHON = (DOCS / "python.md").read_text(encoding="utf-8")
LANGUAGE = (DOCS / "language.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return LANGUAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_function_is_listed_once():
    rows = re.findall(r"^\| [^|`]*[123][^|]*\|(.*)\|$", section("Functions"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(name for name in listed if name != "bool") == sorted(TC_FUNCTIONS.keys() - BORDERS.keys())


def test_every_type_is_listed():
    assert {kind.value for kind in DType} <= set(re.findall(r"\w+", section("Types")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_codes_and_links_exist(page):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"\bTC\d{3}\b", text)) <= set(codes.ALL)
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_are_short(page):
    assert long_sentences(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["tc_jupyter/diagnostics/index.md", "CHANGELOG.md", ".github/CONTRIBUTING.md"])
def test_sentences_of_messages_and_changes_are_short(name):
    assert long_sentences((DOCS.parents[1] / name).read_text(encoding="utf-8")) == []


def test_long_sentences_are_found():
    words = " ".join(["word"] * 35)
    assert long_sentences(f"A short one. W{words}\n\n* W{words}\n* `more words in code`\n") == []
    assert len(long_sentences(f"Then {words}.\n\n* One {words}.\n")) == 2
    assert long_sentences(f"```tc\nOne {words}\n```\n") == []
    assert len(long_sentences(f"| One {words} | short |\n")) == 1
    assert len(long_sentences(f"One: {words}.")) == 1


def test_docstrings_name_sections_that_exist():
    titles = {
        page.name: set(re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)) for page in PAGES
    }
    named = [
        (page, title)
        for path in DOCS.parent.rglob("*.py")
        for page, rest in re.findall(r"`docs/(\w+\.md)`, ((?:'[^']+'(?:,| and)? ?)+)", path.read_text(encoding="utf-8"))
        for title in re.findall(r"'([^']+)'", rest)
    ]
    assert len(named) > 5
    for page, title in named:
        assert title in titles[page], f"{page} has no section {title!r}"


@pytest.mark.parametrize("page", ["chunks", "gradients", "python", "teaching"])
def test_the_code_of_a_page(page, capsys, monkeypatch, tmp_path):
    for package in ("llvmlite", "sympy", "anywidget"):
        pytest.importorskip(package)
    for package in ("dask.array", "xarray", "zarr") if page == "chunks" else ():
        pytest.importorskip(package)
    monkeypatch.setenv("TC_JUPYTER_CACHE", str(tmp_path))
    names = {}
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) > 3
    for code in blocks:
        exec(compile(code, f"{page}.md", "exec"), names)
        expected = re.findall(r"^ *print\(.*\) +# (.*)$", code, re.MULTILINE)
        assert capsys.readouterr().out.splitlines() == expected


def parameters(function) -> str:
    """`stage, axis, factor=None`."""
    shown = []
    for each in inspect.signature(function).parameters.values():
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={each.default!r}".replace("'", '"')
        shown.append(f"{star}{each.name}{default}")
    return ", ".join(shown[shown[0] == "self" :])


def test_every_primitive_is_on_the_python_page_with_its_arguments():
    found = [name for name, method in vars(Schedule).items() if "\nExample:" in (method.__doc__ or "")]
    assert len(found) > 15
    assert not [each for name in found if (each := f"`{name}({parameters(getattr(Schedule, name))})`") not in PYTHON]


def test_every_argument_and_method_is_on_the_python_page():
    for argument in parameters(tc.compile).split(", ")[1:]:
        assert f"| `{argument}` |" in PYTHON
    inside = {"at_rank", "definition", "program", "program_for", "analysis", "options", "source_text", "written_name"}
    inside |= {"is_open", "leaves_ranks_open", "given_schedule"}
    public = {name for name in dir(tc.Function) if not name.startswith("_")}
    assert inside < public
    assert not [name for name in public - inside if f"f.{name}" not in PYTHON]
    assert not [
        name for name in tc.__all__ if f"tc.{name}" not in PYTHON and name not in ("Analysis", "Function", "Module")
    ]


def test_every_view_is_on_the_python_page():
    views = pytest.importorskip("tc_jupyter.notebook.widgets.views")
    for name, view in views.VIEWS.items():
        (row,) = [line for line in PYTHON.splitlines() if line.startswith(f'| `"{name}"` |')]
        options = [each for each in inspect.signature(view).parameters if each not in ("function", "sizes")]
        assert not [each for each in options if each not in row]


def test_every_key_of_the_teaching_page_is_one_of_its_view():
    views = pytest.importorskip("tc_jupyter.notebook.widgets.views")
    view, seen = "", set()
    for name, keys in re.findall(
        r'^\| (`"\w+"`)? ?\| (.*?) \|', (DOCS / "teaching.md").read_text(encoding="utf-8"), re.MULTILINE
    ):
        view = name.strip('`"') or view
        source = inspect.getsource(inspect.getmodule(views.VIEWS[view]))
        for key in re.findall(r"`([\w:]+?)(?:INDEX)?`", keys):
            assert f'"{key}"' in source, f"{view}: {key}"
            seen.add((view, key))
    assert len(seen) > 15
    assert {view for view, _ in seen} == set(views.VIEWS) - {"tuning"}
