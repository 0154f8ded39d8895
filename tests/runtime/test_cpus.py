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
def test_a_thread_is_sent_to_the_other_processors_of_the_caller():
    allowed = os.sched_getaffinity(0)
    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), done.wait()))
    thread.start()
    assert ready.wait(60)
    cpus.send_away(thread.native_id, min(allowed))
    found = os.sched_getaffinity(thread.native_id)
    done.set()
    thread.join()
    assert found == (allowed - {min(allowed)} or allowed)
    assert os.sched_getaffinity(0) == allowed


@moves
def test_a_thread_that_is_gone_or_unknown_is_left_alone():
    thread = threading.Thread(target=str)
    thread.start()
    thread.join()
    cpus.send_away(thread.native_id, min(os.sched_getaffinity(0)))
    cpus.send_away(None, 0)


def test_a_system_that_does_not_say_has_no_number(monkeypatch):
    monkeypatch.setattr(cpus, "_reader", lambda: None)
    assert cpus.current_cpu() is None
