"""Every notebook of `examples/` runs from top to bottom; only cells that say so raise, and those do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LONGEST = 300
"""Seconds for one cell, far above what any needs."""


@pytest.fixture(autouse=True, scope="module")
def _packages():
    """Imported by the process that runs these tests: they take seconds, which every process would spend on collecting them."""
    global nbformat, nbclient
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")


def run(notebook, folder):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder / "ipython")}
    client = nbclient.NotebookClient(
        notebook, timeout=LONGEST, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)


def errors_of(cell) -> list[str]:
    return [output.evalue for output in cell.get("outputs", []) if output.output_type == "error"]


def test_there_is_a_quickstart():
    assert "quickstart.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    for package in ("torch", "dask", "xarray", "zarr", "pandas"):
        if any(re.search(rf"^import (?:.*, )?{package}\b", cell.source, re.MULTILINE) for cell in notebook.cells):
            pytest.importorskip(package)
    run(notebook, tmp_path)
    for cell in notebook.cells:
        expected = "raises-exception" in cell.metadata.get("tags", [])
        assert bool(errors_of(cell)) == expected, f"{cell.source}\n{errors_of(cell)}"
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", f"{cell.source}\n{output.text}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_with_its_outputs_and_without_machine_paths(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not re.search(r"/(?:home|root|tmp|Users|work|opt)/", path.read_text(encoding="utf-8"))
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.pygments_lexer == "ipython3"


def test_a_mistake_stops_the_run(tmp_path):
    cells = ["%load_ext tc_jupyter", "%%tc\ndef f(float(N, K) A) -> (B) { B(i) = A(i, k) }", "reached = True"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="TC204"):
        run(notebook, tmp_path)
    assert notebook.cells[2].execution_count is None
    (error,) = [output for output in notebook.cells[1].outputs if output.output_type == "error"]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert "help: replace `=` by `+=!`" in shown
    assert "Traceback" not in shown
    assert "magic.py" not in shown


def test_the_notebook_for_marimo_runs_and_shows_cards(monkeypatch):
    pytest.importorskip("marimo")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from importlib import import_module

    from marimo import as_html

    outputs, names = import_module("in_marimo").app.run()
    assert len(names["smoothed"]) == 48
    shown = [as_html(output).text for output in outputs]
    assert sum("anywidget" in text for text in shown) == 2  # the card and the view
    assert "48 values" in shown[3]
    assert "0 &lt;= i &lt; N - K + 1" in outputs[1]._display_().state["data"]["head"]


def test_cards_without_widgets(monkeypatch):
    import tc_jupyter as tc
    from tc_jupyter.notebook.widgets import live

    monkeypatch.setattr(live, "find_spec", lambda name: None)
    module = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) }")
    for made in (module, module.f, tc.view(module.f)):
        assert "N" in made._display_()._repr_html_()
    with pytest.raises(TypeError, match="not a str"):
        tc.card("f")
