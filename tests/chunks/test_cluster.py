"""Several processes: a real cluster on this machine, which loses a worker."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tc_jupyter as tc

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

LIMIT = 200  # seconds, far above what a busy machine needs
TEXT = """
def blur(float(H, W) X) -> (Y) { Y(i, j) = (X(i - 1, j) else 0) + X(i, clamp(j + 1)) + X(i, j) where i in 0:H, j in 0:W }
def total(float(H, W) X) -> (S) { Y = blur(X)  S(j) +=! Y(i, j) }
"""


def end_of(path):
    """A task that ends the process of its worker, the first time that it runs."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return np.zeros(1)
    os._exit(1)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_answers_right(tmp_path):
    from distributed import Client, LocalCluster, wait

    module = tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322"))
    values = np.random.default_rng(0).integers(0, 9, (24, 16)).astype(np.float32)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        X = da.from_array(values, chunks=(6, 4))
        blurred = client.persist(module.blur(X))
        wait(blurred, timeout=LIMIT)
        assert all(client.has_what().values())  # either worker has chunks that are lost with it
        lost = client.submit(end_of, str(tmp_path / "once"), pure=False)
        S, Y = client.compute([module.total(X), blurred])
        np.testing.assert_array_equal(Y.result(timeout=LIMIT), module.blur(values))
        np.testing.assert_array_equal(S.result(timeout=LIMIT), module.total(values))
        np.testing.assert_array_equal(lost.result(timeout=LIMIT), 0)
        assert (tmp_path / "once").exists()


@pytest.mark.slow
def test_processes_compile_the_text():
    """The scheduler with processes of `dask` itself."""
    module = tc.compile(TEXT, target="interpreter", allow=("TC321", "TC322"))
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    X = da.from_array(values, chunks=(3, 2))
    found = module.blur(X).compute(scheduler="processes", num_workers=1)
    np.testing.assert_array_equal(found, module.blur(values))
