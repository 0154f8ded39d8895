"""The pool of result buffers: reuse, and never while anything refers to a buffer."""

from __future__ import annotations

import gc
import mmap
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tc_jupyter.runtime import memory
from tc_jupyter.runtime.memory import (
    HUGE_PAGE_BYTES,
    POOL,
    SMALL_BYTES,
    Pool,
    _capacity,
    aligned_empty,
    empty,
    empty_cache,
)

F4 = np.dtype(np.float32)


def lend(pool: Pool, nbytes: int) -> np.ndarray:
    return np.ndarray((nbytes,), np.uint8, pool.take(nbytes))


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_freed_buffer_is_lent_again():
    pool = Pool(limit=1 << 30)
    first = lend(pool, 1 << 20)
    where = address(first)
    del first
    assert pool.unused_bytes() == 1 << 20
    assert address(lend(pool, 1 << 20)) == where
    assert pool.reused == 1


@pytest.mark.some(5)
@pytest.mark.parametrize(
    "keep",
    [
        lambda a: a[3:5],
        lambda a: a.reshape(-1, 4).T,
        lambda a: memoryview(a),
        lambda a: memoryview(a)[5:],
        lambda a: a.view(np.float32)[::-1],
        lambda a: np.from_dlpack(a),
        lambda a: np.asarray(memoryview(a))[1:],
        lambda a: a.base,
        lambda a: a.base[3:5],
        lambda a: a.base.view(np.ndarray)[3:5],
        lambda a: a.ctypes,
        lambda a: a.__dlpack__(),
        lambda a: np.lib.stride_tricks.as_strided(a, (2,), (1,)),
    ],
)
def test_a_buffer_stays_lent_while_anything_refers_to_it(keep):
    pool = Pool(limit=1 << 30)
    array = lend(pool, 1 << 20)
    where = address(array)
    kept = keep(array)
    del array
    gc.collect(1)
    assert pool.unused_bytes() == 0
    assert address(lend(pool, 1 << 20)) != where
    del kept
    gc.collect(1)
    assert pool.unused_bytes() == 2 << 20


def test_a_tensor_made_from_an_array_keeps_it():
    torch = pytest.importorskip("torch")
    pool = Pool(limit=1 << 30)
    tensor = torch.from_numpy(lend(pool, 1 << 20))[7:]
    gc.collect(1)
    assert pool.unused_bytes() == 0
    del tensor
    gc.collect(1)
    assert pool.unused_bytes() == 1 << 20


def test_a_buffer_comes_back_when_the_names_of_the_module_are_gone(monkeypatch):
    """As at the end of the interpreter."""
    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    pool = Pool(1 << 30)
    lease = pool.take(1 << 20)
    monkeypatch.setattr(memory, "_End", None)
    del lease
    assert failed == []
    assert len(pool._returned) == 1


def test_unused_memory_is_bounded_and_the_oldest_goes_first():
    pool = Pool(limit=2 << 20)
    arrays = [lend(pool, 1 << 20) for _ in range(4)]
    newest = address(arrays[3])
    while arrays:
        arrays.pop(0)
    assert pool.unused_bytes() == 2 << 20
    assert address(lend(pool, 1 << 20)) == newest


def test_a_buffer_beyond_the_limit_is_not_kept():
    pool = Pool(limit=1 << 20)
    lend(pool, 8 << 20)
    assert pool.unused_bytes() == 0


def test_clear_returns_everything_unused_and_nothing_else():
    pool = Pool(limit=1 << 30)
    kept = lend(pool, 1 << 20)
    kept[:] = 7
    lend(pool, 3 << 20)
    assert pool.clear() == 3 << 20
    assert pool.clear() == 0
    assert (kept == 7).all()


@pytest.mark.parametrize("nbytes", [1, 4096, 4097, 123_456, 1 << 20, (1 << 20) + 1, 10_000_019])
def test_capacity_wastes_at_most_an_eighth_or_a_page(nbytes):
    assert nbytes <= _capacity(nbytes, whole=False) <= max(nbytes + 4096, nbytes * 9 // 8 + 1)


def test_scratch_memory_is_whole_huge_pages():
    empty_cache()
    first = aligned_empty((100_000,), F4, 64)
    where = address(first)
    assert where % HUGE_PAGE_BYTES == 0
    del first
    assert address(aligned_empty((400_000,), F4, 64)) == where


def huge_bytes(where: int) -> int:
    """Bytes of huge pages in the mapping around an address, as the system counts them; 0 if it does not."""
    inside = False
    if not Path("/proc/self/smaps").exists():
        return 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low <= where < high
        elif inside and head == "AnonHugePages:":
            return int(line.split()[1]) << 10
    return 0


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell its pages")
def test_memory_that_the_system_would_give_in_huge_pages_comes_in_huge_pages():
    """Shared mappings, the default of `mmap`, never do: products read from them took up to twice as long."""
    own = mmap.mmap(-1, 4 * HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    own.madvise(mmap.MADV_HUGEPAGE)
    plain = np.frombuffer(own, np.uint8)
    plain[:] = 1
    if not huge_bytes(address(plain) + HUGE_PAGE_BYTES):
        pytest.skip("no huge pages on this system")
    array = lend(Pool(limit=0), 4 * HUGE_PAGE_BYTES)
    array[:] = 1
    assert huge_bytes(address(array)) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_what_a_forked_child_writes_stays_in_the_child():
    array = lend(Pool(limit=0), 1 << 20)
    array[:] = 1
    assert exit_of_child(lambda: array.fill(2)) == 0
    assert (array == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_was_forked_while_a_thread_held_the_lock_gets_memory():
    with POOL._lock:
        assert exit_of_child(lambda: [empty((1 << 20,), np.dtype(np.uint8)) for _ in range(3)]) == 0


def exit_of_child(work) -> int:
    """The exit status of a forked child that does some work."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_lease_that_a_finaliser_revives_stays_lent():
    kept: list[object] = []

    class Reviving:
        def __del__(self):
            kept.append(self.lease)

    pool = Pool(limit=1 << 30)
    array = lend(pool, 1 << 20)
    owner = Reviving()
    owner.lease, owner.itself = array.base, owner
    del array, owner
    gc.collect()
    assert len(kept) == 1
    assert pool.unused_bytes() == 0


def test_a_finaliser_that_interrupts_the_pool_gets_memory():
    pool = Pool(limit=1 << 30)
    lend(pool, 1 << 20)
    with pool._lock:
        assert lend(pool, 1 << 20).nbytes == 1 << 20
        assert pool.clear() == 0


def test_results_take_no_more_memory_than_their_capacity_says():
    size = HUGE_PAGE_BYTES * 9 // 8
    pool = Pool(limit=0)
    array = lend(pool, size)
    array[:] = 1
    assert huge_bytes(address(array)) <= HUGE_PAGE_BYTES


@pytest.mark.parametrize("nbytes", [1, 300_000, 130 << 20, 139 << 20])
def test_scratch_has_eight_steps_per_power_of_two_or_whole_huge_pages(nbytes):
    capacity = _capacity(nbytes, whole=True)
    assert capacity % HUGE_PAGE_BYTES == 0
    assert nbytes <= capacity <= max(HUGE_PAGE_BYTES, nbytes * 9 // 8)
    assert nbytes < 100 << 20 or capacity == 144 << 20


def test_large_buffers_start_at_a_huge_page():
    assert address(lend(Pool(limit=0), 4 * HUGE_PAGE_BYTES)) % HUGE_PAGE_BYTES == 0


def test_empty_gives_writable_row_major_arrays_of_any_size():
    for shape in [(), (0,), (3, 0, 5), (17,), (1000, 1000)]:
        array = empty(shape, F4)
        assert array.shape == shape
        assert array.flags.c_contiguous
        assert array.flags.writeable
        array[...] = 1


def test_sizes_that_no_memory_holds_are_refused_and_not_wrapped():
    for shape in [(1 << 40, 1 << 40), (1 << 62,), (1 << 33, 1 << 31), (1 << 45,)]:
        with pytest.raises(MemoryError):
            empty(shape, F4)


def test_memory_that_the_system_would_kill_for_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "left_bytes", lambda: memory.CHECKED_BYTES)
    with pytest.raises(MemoryError, match="are left"):
        empty((memory.CHECKED_BYTES,), F4)


def test_a_container_may_use_less_memory_than_the_machine_has(monkeypatch, tmp_path):
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text("3000000\n")
    used.write_text("1000000\n")
    whole = memory.left_bytes()
    monkeypatch.setattr(memory, "CONTAINER_LIMITS", ((str(limit), str(used)),))
    assert memory.left_bytes() in (2_000_000, None)
    stat = tmp_path / "memory.stat"
    stat.write_text("anon 9\ninactive_file 300000\nactive_file 200000\n")
    assert memory.left_bytes() in (2_500_000, None)
    stat.write_text("inactive_file 1\nactive_file 1\ntotal_inactive_file 400000\ntotal_active_file 200000\n")
    assert memory.left_bytes() in (2_600_000, None)
    limit.write_text("max\n")
    assert (memory.left_bytes() is None) == (whole is None)


def test_empty_cache_gives_memory_back():
    array = empty((SMALL_BYTES,), F4)
    del array
    assert empty_cache() >= 4 * SMALL_BYTES
    assert empty_cache() == 0


def test_threads_never_share_a_buffer():
    pool = Pool(limit=1 << 30)
    failures: list[int] = []

    def work(mark: int) -> None:
        for _ in range(200):
            array = lend(pool, 1 << 16)
            array[:] = mark
            if (array != mark).any():
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.reused > 0


@pytest.mark.parametrize("shape", [(), (1,), (3, 7), (0, 4), (1000, 1000)])
def test_aligned_arrays(shape):
    for _ in range(5):
        array = aligned_empty(shape, F4, 64)
        assert array.shape == shape
        assert address(array) % 64 == 0
        array[...] = 1
