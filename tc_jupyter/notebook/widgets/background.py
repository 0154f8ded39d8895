"""A view whose work runs in a thread while the controls stay alive: measurements and searches."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tc_jupyter.function import Function

from .picture import Picture, one_line


class BackgroundPicture(Picture):
    """A picture with `run`, which one thread does at a time and which ends early once `stopping` is set."""

    def __init__(self, function: Function) -> None:
        """Nothing runs yet."""
        super().__init__(function)
        self.stopping = threading.Event()
        self.changed: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Called whenever there is something new to show."""
        self.changed = changed

    @property
    def running(self) -> bool:
        """Whether the work goes on now."""
        return self._thread is not None and self._thread.is_alive()

    @abstractmethod
    def run(self) -> Any:
        """Do the work; calls `changed` as it goes on."""

    def obey(self, values: Mapping[str, Any], stop: str) -> None:
        """The buttons: `stop`, by the name it has in the view, and `run`."""
        if values.get(stop):
            self.stopping.set()
        if values.get("run") and not self.running:
            self.stopping.clear()
            self._thread = threading.Thread(target=self._watched, name=f"tc-{self.name}", daemon=True)
            self._thread.start()

    def _watched(self) -> None:
        try:
            self.run()
        except Exception as problem:  # told in the view: nobody sees a traceback of this thread
            self.problem = one_line(problem)
        self._thread = None
        self.changed()
