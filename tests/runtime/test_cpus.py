from __future__ import annotations

import os
import threading

import pytest

from tc_jupyter.runtime import cpus

moves = pytest.mark.skipif(cpus.current_cpu() is None, reason="no affinity on this system")


@moves
def test_the_processor_of_this_thread_is_one_it_may_use():
    assert cpus.current_cpu() in os.sched_getaffinity(0)


@moves
def test_a_thread_is_sent_to_its_other_processors_and_may_come_back():
    allowed = os.sched_getaffinity(0)
    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), done.wait()))
    thread.start()
    assert ready.wait(300)
    first, last = min(allowed), max(allowed)
    moved = [cpus.send_away(thread.native_id, first), cpus.send_away(thread.native_id, first)]
    found = [os.sched_getaffinity(thread.native_id)]
    moved.append(cpus.send_away(thread.native_id, last, first))
    found.append(os.sched_getaffinity(thread.native_id))
    done.set()
    thread.join()
    several = len(allowed) > 1
    assert moved == [several, False, several]
    assert found == [allowed - {first} or allowed, allowed - {last} or allowed]
    assert os.sched_getaffinity(0) == allowed


@moves
def test_a_thread_that_is_gone_or_unknown_is_left_alone():
    gone = 1 << 22  # more than the largest number that Linux gives
    assert not cpus.send_away(gone, min(os.sched_getaffinity(0)))
    assert not cpus.send_away(None, 0)


def test_a_system_that_does_not_say_has_no_number(monkeypatch):
    monkeypatch.setattr(cpus, "_reader", lambda: None)
    assert cpus.current_cpu() is None
