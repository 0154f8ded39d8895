"""The store of schedules: what is kept, what is refused, what is not believed."""

import json
import os
import threading

import pytest

from tc_jupyter.schedule import ScheduleStore, StoreKey
from tests.running import default

TEXT = "def f(float(N,M) X) -> (O) { T(i,j) = 2*X(i,j)  O(i,j) = T(i,j) + T(i,j+1) }"
KEY = StoreKey("abc", "cpu", (("N", 64),))


@pytest.fixture
def schedule():
    s = default(TEXT).tile("O", "i", "j", 4, 8).compute_at("T", "O", "j.outer")
    return s.storage("T", layout=((1, 0), (0, 0), (1, 4))).parallel("O", "i.outer")


def test_what_is_put_comes_back(tmp_path, schedule):
    store = ScheduleStore(tmp_path / "new")
    assert store.best(KEY) is None
    assert store.put(KEY, schedule.steps, 2.0)
    assert store.best(KEY).steps == schedule.steps
    again = store.schedule(KEY, default(TEXT).graph)
    assert again.graph.stages == schedule.graph.stages
    assert store.best(StoreKey("abc", "cpu", (("N", 65),))) is None
    store.remove(KEY)
    assert store.best(KEY) is None


def test_only_a_faster_schedule_replaces_one(tmp_path, schedule):
    store = ScheduleStore(tmp_path)
    assert store.put(KEY, schedule.steps, 2.0)
    assert not store.put(KEY, (), 3.0)
    assert store.put(KEY, (), 1.0)
    assert (store.best(KEY).steps, store.best(KEY).seconds) == ((), 1.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: "{",
        lambda data: "[]",
        lambda data: "[" * 100_000,
        lambda data: json.dumps({**data, "schema": "other"}),
        lambda data: json.dumps({**data, "key": ["xyz", "cpu", []]}),
        lambda data: json.dumps({**data, "steps": [["replay", [], []]]}),
        lambda data: json.dumps({**data, "steps": [["__init__", [], []]]}),
        lambda data: json.dumps({key: value for key, value in data.items() if key != "seconds"}),
    ],
)
def test_a_damaged_file_counts_as_absent(tmp_path, schedule, change):
    store = ScheduleStore(tmp_path)
    store.put(KEY, schedule.steps, 2.0)
    (path,) = tmp_path.iterdir()
    path.write_text(change(json.loads(path.read_text())))
    assert store.best(KEY) is None
    assert store.put(KEY, schedule.steps, 5.0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_counts_as_absent(tmp_path, schedule):
    store = ScheduleStore(tmp_path)
    store.put(KEY, schedule.steps, 2.0)
    (path,) = tmp_path.iterdir()
    path.unlink()
    os.mkfifo(path)
    assert store.best(KEY) is None
    assert store.put(KEY, schedule.steps, 5.0)
    assert store.best(KEY).seconds == 5.0


def test_steps_that_no_longer_fit_count_as_absent(tmp_path, schedule):
    store = ScheduleStore(tmp_path)
    store.put(KEY, schedule.steps, 2.0)
    other = default("def f(float(N) X) -> (O) { O(i) = X(i) }")
    assert store.schedule(KEY, other.graph) is None
    assert store.best(KEY) is not None


def test_a_store_without_folder_keeps_nothing(schedule):
    store = ScheduleStore(None)
    assert not store.put(KEY, schedule.steps, 1.0)
    assert store.best(KEY) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, schedule):
    (tmp_path / "file").write_text("")
    assert not ScheduleStore(tmp_path / "file" / "inside").put(KEY, schedule.steps, 1.0)


def test_readers_see_whole_files_while_others_write(tmp_path, schedule):
    store = ScheduleStore(tmp_path)
    store.put(KEY, schedule.steps, 1000.0)
    missing = []

    def read():
        for _ in range(200):
            if store.best(KEY) is None:
                missing.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        store.put(KEY, schedule.steps, 999.0 - number)
    reader.join()
    assert not missing
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
