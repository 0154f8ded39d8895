"""`check.py` without a GPU: it says so, shows what can be known, goes on from what a file holds, and keeps failures apart."""

from __future__ import annotations

import json

import pytest

from tc_jupyter.bench import runner as bench
from tc_jupyter.runtime import nvrtc
from tests.gpu import check
from tests.gpu.cases import CASES
from tests.running import program_of


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(check, "gpu_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["check.py"])
    assert check.main() == 2
    assert "no GPU" in capsys.readouterr().err


@pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))
@pytest.mark.parametrize(
    "names", [("product", "softmax", "stencil"), pytest.param(tuple(CASES), marks=pytest.mark.slow)]
)
def test_the_table_names_every_template_and_nothing_spills(names, capsys, monkeypatch):
    monkeypatch.setattr(check, "CASES", {name: CASES[name] for name in names})
    assert check.static_table(("sm_80",)) == 0
    printed = capsys.readouterr().out
    assert [name for name in names if name not in printed] == []


def test_a_stage_writes_every_row_and_goes_on(monkeypatch, tmp_path):
    calls: list[str] = []

    def rows(compiled):
        def good():
            calls.append("good")
            return {"ok": True, "error": 0.0}

        def bad():
            calls.append("bad")
            raise ValueError("an illegal access")

        yield "good", good
        yield "bad", bad

    monkeypatch.setattr(check, "_poisoned", lambda: False)
    monkeypatch.setitem(check.STAGES, "parity", rows)
    file = tmp_path / "rows.json"
    assert check.run_stage("parity", file, 60.0) == 1
    found = json.loads(file.read_text())
    assert [row["name"] for row in found] == ["good", "bad"]
    assert "illegal access" in found[1]["error"]
    check.run_stage("parity", file, 60.0)
    assert calls == ["good", "bad", "bad"]
    assert "FAILED" in check.markdown(found)


def test_shares_of_a_stage_are_all_its_rows_once(monkeypatch, tmp_path):
    monkeypatch.setattr(check, "_poisoned", lambda: False)
    monkeypatch.setitem(
        check.STAGES, "parity", lambda compiled: ((str(place), lambda: {"ok": True}) for place in range(7))
    )
    file, shares = tmp_path / "rows.json", [check.Share(first, 3) for first in range(3)]
    for share in shares:
        assert check.run_stage("parity", file, 60.0, share) == 0
    check._collect(file, shares)
    assert sorted(row["name"] for row in json.loads(file.read_text())) == [str(place) for place in range(7)]
    assert [each.name for each in tmp_path.iterdir()] == ["rows.json"]


def test_nothing_is_asked_of_a_lost_context(monkeypatch, tmp_path):
    monkeypatch.setattr(check, "_poisoned", lambda: True)
    monkeypatch.setitem(
        check.STAGES, "parity", lambda compiled: ((str(place), lambda: {"ok": False}) for place in range(7))
    )
    assert check.run_stage("parity", tmp_path / "rows.json", 60.0) == 1
    assert [row["name"] for row in json.loads((tmp_path / "rows.json").read_text())] == ["0"]


def test_parity_covers_every_template_at_the_edges_of_tiles():
    names = [name for name, _ in check.parity()]
    assert len(names) == len(set(names))
    for name, case in CASES.items():
        mine = [each for each in names if each == name or each.startswith(f"{name} ")]
        assert len(mine) >= (2 if case.sizes[0] else 1), name


def test_every_workload_of_the_suite_is_a_program():
    for workload in bench.workloads("gpu"):
        assert program_of(workload.text) is not None, workload.name


def test_only_some_rows_in_the_order_of_the_words(monkeypatch, tmp_path):
    """Rows of stages that cannot be chosen by name are all run."""
    calls: list[str] = []

    def rows(compiled):
        for name in ("product N=1", "softmax N=1", "product N=2"):
            yield name, lambda name=name: calls.append(name) or {"ok": True}

    monkeypatch.setattr(check, "_poisoned", lambda: False)
    monkeypatch.setitem(check.STAGES, "parity", rows)
    monkeypatch.setitem(check.STAGES, "programs", rows)
    check.run_stage("parity", tmp_path / "one.json", 60.0, only=("softmax", "N=2"))
    assert calls == ["softmax N=1", "product N=2"]
    check.run_stage("programs", tmp_path / "two.json", 60.0, only=("softmax",))
    assert len(calls) == 5


def test_stages_that_do_not_exist(monkeypatch, capsys):
    monkeypatch.setattr(check, "gpu_available", lambda: True)
    monkeypatch.setattr("sys.argv", ["check.py", "--json", "none.json", "--stages", "timing"])
    with pytest.raises(SystemExit):
        check.main()
    assert "no stage timing" in capsys.readouterr().err
