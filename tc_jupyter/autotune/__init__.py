"""Candidates -> timings -> store: which schedule of a def is fastest here.

Comes in: schedules, and a job that runs them. Goes out: a `TuningLog`; the best one is on disk once it is known. Candidates are
built and timed in processes of their own. `function.Function.tune` brings the schedules and the arguments.
"""

from .cost import estimate
from .job import Job, ScheduleJob
from .search import Trial, TuningLog, search
from .workers import Workers

__all__ = ["Job", "ScheduleJob", "Trial", "TuningLog", "Workers", "estimate", "search"]
