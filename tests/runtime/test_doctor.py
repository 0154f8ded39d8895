"""What is installed and which engine is used."""

from __future__ import annotations

import pytest

from tc_jupyter.runtime.doctor import Finding, Report, choose, doctor, engine, installed

GPU = Finding("gpu", "ok", "Some GPU, sm_90")
NONE = Finding("gpu", "absent", "no driver")


@pytest.mark.parametrize(
    ("gpu", "cupy", "llvmlite", "engine", "words"),
    [
        (GPU, "14.2", "0.50", "cuda", "CuPy 14.2"),
        (GPU, None, "0.50", "cpu", "llvmlite 0.50"),
        (NONE, "14.2", "0.50", "cpu", "no driver"),
        (NONE, None, None, "interpreter", "llvmlite is not installed"),
    ],
)
def test_the_engine_and_why(gpu, cupy, llvmlite, engine, words):
    name, reason = choose(gpu, cupy, llvmlite)
    assert name == engine
    assert words in reason


def test_the_report_covers_this_environment():
    report = doctor()
    names = {finding.name for finding in report.findings}
    assert {"python", "numpy", "llvmlite", "islpy", "nvrtc", "gpu", "cupy", "cpu"} <= names
    assert report.engine in ("cpu", "cuda", "interpreter")
    assert str(report).startswith(f"engine: {report.engine} (")
    assert report.healthy


def test_missing_parts_say_what_is_lost_and_how_to_get_them():
    report = Report("cpu", "x", (Finding("a", "absent", "lost", "pip install a"), Finding("b", "broken", "gone")))
    assert "lost" in str(report)
    assert "pip install a" in str(report)
    assert not report.healthy


def test_the_engine_in_one_line():
    assert engine("interpreter").startswith("interpreter (asked for")
    assert engine().startswith(doctor().engine)
    assert engine("cuda").startswith("cuda (")
    assert len(engine().splitlines()) == 1


def test_versions_of_distributions():
    assert installed("numpy")
    assert installed("no-such-distribution-here") is None
