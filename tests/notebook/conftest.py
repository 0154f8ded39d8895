"""A shell of IPython in this process, with the extension loaded."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")


class Session:
    """Runs cells and keeps what they showed."""

    def __init__(self, shell, capsys):
        self.shell = shell
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, cell: str):
        """The value of a cell; raises what it raised."""
        self._capsys.readouterr()
        result = self.shell.run_cell(cell)
        self.out, self.err = self._capsys.readouterr()
        result.raise_error()
        return result.result

    def fails(self, cell: str) -> str:
        """The text that a failing cell shows."""
        try:
            self(cell)
        except Exception:
            return self.out + self.err
        pytest.fail(f"nothing was raised: {self.out}")

    @property
    def names(self):
        return self.shell.user_ns


@pytest.fixture
def bare_shell(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.colors = "nocolor"
    yield shell
    shell.run_line_magic("unload_ext", "tc_jupyter")
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def session(bare_shell, capsys):
    made = Session(bare_shell, capsys)
    made("%load_ext tc_jupyter")
    return made
