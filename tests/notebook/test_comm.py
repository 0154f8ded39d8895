"""The channel to the front end: one reply for each message, whatever the message is, and nothing on a stream."""

from __future__ import annotations

import json
import threading

import pytest

pytest.importorskip("IPython")

import tc_jupyter as tc
from tc_jupyter import ide
from tc_jupyter.notebook import comm as channel_module
from tc_jupyter.notebook.comm import VERSION, Channel, close_channel, front_end, open_channel, read_options

SCALE = "def scale(float(N) X) -> (Y) { Y(i) = 2 * X(i) }"
CALLER = "def caller(float(N) X) -> (Z) { Z = scale(X) }"
HEAD = {"v": 1, "kind": "check", "id": "page-7", "cell": "c1", "version": 12, "magic": "%%tc", "source": SCALE}
START = {"line": 0, "character": 0}


class Shell:
    """As much of a shell as the channel looks at."""

    def __init__(self, **names):
        self.user_ns = names
        self.kernel = object()


class FakeComm:
    def __init__(self, target_name, data):
        self.target_name, self.data = target_name, data
        self.sent: list[dict] = []
        self.closed = False

    def on_msg(self, handler):
        self.handler = handler

    def send(self, data):
        self.sent.append(json.loads(json.dumps(data, allow_nan=False)))

    def close(self):
        self.closed = True


@pytest.fixture
def comms(monkeypatch):
    import comm

    made: list[FakeComm] = []

    def create(target_name, data):
        made.append(FakeComm(target_name, data))
        return made[-1]

    monkeypatch.setattr(comm, "create_comm", create)
    yield made
    close_channel()


def ask(data=None, shell=None, **changes):
    request = {**HEAD, **changes} if data is None else data
    return json.loads(json.dumps(Channel(shell or Shell()).answer(request), allow_nan=False))


def functions(**modules):
    return {name: tc.compile(text)[name] for name, text in modules.items()}


# answers -------------------------------------------------------------------------------------------------------------------------


def test_a_reply_repeats_the_envelope():
    reply = ask()
    assert {key: reply[key] for key in ("v", "kind", "id", "cell", "version")} == {
        key: HEAD[key] for key in ("v", "kind", "id", "cell", "version")
    }
    assert reply["analysis"] == tc.analyze(SCALE).to_json()


@pytest.mark.parametrize(
    ("kind", "key", "extra"),
    [
        ("check", "analysis", {}),
        ("hover", "hover", {"position": {"line": 0, "character": 33}}),
        ("complete", "completions", {"position": {"line": 0, "character": 36}, "explicit": True}),
        ("signature", "signature", {"position": START}),
        ("definition", "definition", {"position": {"line": 0, "character": 5}}),
        ("rename", "rename", {"position": {"line": 0, "character": 33}, "name": "row"}),
        ("format", "format", {}),
        ("keywords", "keywords", {"source": "", "cell": ""}),
        ("inspect", "inspect", {"what": "code", "name": "scale", "form": "loops"}),
        ("inspect", "inspect", {"what": "schedule", "name": "scale", "sizes": {"N": 8}}),
        ("inspect", "inspect", {"what": "cells", "source": "", "magic": "", "cells": [{"cell": "a", "version": 0, "magic": "%%tc", "source": SCALE}]}),
    ],
)  # fmt: skip
def test_every_kind_has_one_answer(kind, key, extra):
    reply = ask(kind=kind, **extra)
    assert reply["kind"] == kind
    assert set(reply) == {"v", "kind", "id", "cell", "version", key}
    if kind != "signature":
        assert reply[key]


def test_nothing_to_say_is_null_and_no_error():
    assert ask(kind="signature", position=START)["signature"] is None
    assert ask(kind="hover", position={"line": 50, "character": 0})["hover"] is None


def test_language_and_options_are_read_from_the_magic_line():
    sac = ask(magic="%%sac", source="float[*] inc(float[*] A) { return { iv -> A[iv] + 1 }; }")
    assert sac["analysis"]["diagnostics"] == []
    conv = "def conv(float(N) B, float(M) W) -> (A) { A(i) = B(i) + W(2 * i) where i in 0:N }"
    severity = [d["severity"] for d in ask(source=conv)["analysis"]["diagnostics"]]
    assert "error" not in severity
    strict = ask(source=conv, magic="%%tc --strict")["analysis"]["diagnostics"]
    assert {d["severity"] for d in strict} == {"error"}
    assert ask(source=conv, magic="%%tc --allow TC322")["analysis"]["diagnostics"] == []


@pytest.mark.parametrize(
    ("line", "strict", "allow", "target"),
    [
        ("%%tc", False, (), None),
        ("%%tc --strict --allow tc323 --allow=TC301", True, ("TC323", "TC301"), None),
        ("%%tc --target cpu # why", False, (), "cpu"),
        ("%%tc --target nothing --allow --frobnicate 'open", False, (), None),
        ("", False, (), None),
    ],
)
def test_options_that_cannot_be_read_are_ignored(line, strict, allow, target):
    found = read_options(line)
    assert (found.strict, found.allow, found.target) == (strict, allow, target)


def test_functions_of_the_namespace_may_be_called():
    assert ask(source=CALLER)["analysis"]["diagnostics"] != []
    shell = Shell(**functions(scale=SCALE), other=3)
    assert ask(source=CALLER, shell=shell)["analysis"]["diagnostics"] == []
    position = {"line": 0, "character": CALLER.index("scale") + 1}
    assert ask(kind="hover", source=CALLER, shell=shell, position=position)["hover"]["kind"] == "def"
    told = ask(kind="definition", source=CALLER, shell=shell, position=position)["definition"]
    assert (told["kind"], told["cell"], told["span"]) == ("def", None, None)


def test_cells_above_that_were_not_run_are_known():
    above = [
        {"cell": "a", "magic": "%%tc", "source": "def scale(float(N) X) -> (Y) { Y(i) = X(2 * i) }"},
        {"cell": "b", "magic": "%%tc", "source": SCALE},
        {"cell": "c", "magic": "%%tc", "source": "def broken(float(N"},
        {"cell": "d", "magic": "%%tc", "source": "def second(float(N) X) -> (Y) { Y = scale(X) }"},
    ]
    found = ask(source=CALLER, earlier=above)["analysis"]
    assert found["diagnostics"] == []
    assert found["functions"][0]["outputs"][0]["shape"] == ["N"]  # the last cell that defines it counts
    found = ask(source=CALLER.replace("scale", "second"), earlier=above)["analysis"]
    assert found["diagnostics"] == []
    assert ask(source=CALLER.replace("scale", "broken"), earlier=above)["analysis"]["diagnostics"] != []
    position = {"line": 0, "character": CALLER.index("scale") + 1}
    told = ask(kind="definition", source=CALLER, earlier=above, position=position)["definition"]
    assert (told["cell"], told["span"]["start"]) == ("b", {"line": 0, "character": 4})


def test_the_namespace_goes_before_cells_above():
    shell = Shell(**functions(scale=SCALE))
    above = [{"cell": "a", "magic": "%%tc", "source": "def scale(float(N) X) -> (Y) { Y(i) = X(2 * i) }"}]
    found = ask(source=CALLER, shell=shell, earlier=above)["analysis"]
    assert found["functions"][0]["outputs"][0]["shape"] == ["N"]


@pytest.mark.parametrize(
    "between", ["scale = 3", "scale = len", "import math as scale", "del scale", "kept = scale; del scale"]
)
@pytest.mark.parametrize("caller", [CALLER, "float[*] caller(float[*] a) { return scale(a); }"])
def test_a_name_that_python_has_taken_is_no_function_while_typing_either(session, between, caller):
    magic = "%%tc" if caller is CALLER else "%%sac"
    above = [{"cell": "a", "magic": "%%tc", "source": SCALE}]
    session(f"%%tc\n{SCALE}")
    session(between)
    (told,) = ask(source=caller, magic=magic, shell=session.shell, earlier=above)["analysis"]["diagnostics"]
    shown = " ".join(session.fails(f"{magic}\n{caller}").split())
    assert told["code"] == "TC201"
    assert told["message"] in shown
    assert "run that cell again" in told["help"]
    assert told["help"] in shown
    second = [*above, {"cell": "b", "magic": "%%tc", "source": "def second(float(N) X) -> (Y) { Y = scale(X) }"}]
    found = ask(source=CALLER.replace("scale", "second"), shell=session.shell, earlier=second)["analysis"]
    assert [message["code"] for message in found["diagnostics"]] == ["TC201"]
    position = {"line": 0, "character": CALLER.index("scale") + 1}
    assert ask(kind="hover", source=CALLER, shell=session.shell, earlier=above, position=position)["hover"] is None
    session(f"%%tc\n{SCALE}")
    assert ask(source=caller, magic=magic, shell=session.shell, earlier=above)["analysis"]["diagnostics"] == []


def test_a_cell_above_that_was_not_run_does_not_hide_what_python_has():
    above = [{"cell": "a", "magic": "%%tc", "source": SCALE}]
    (told,) = ask(source=CALLER, shell=Shell(scale=len), earlier=above)["analysis"]["diagnostics"]
    assert told["help"] == "`scale` is a Python function here: run the cell above that defines it"
    (told,) = ask(source=CALLER, shell=Shell(scale=len))["analysis"]["diagnostics"]
    assert told["help"] == "`scale` is a Python function here, and a def calls defs only"


def test_the_state_of_cells():
    shell = Shell(**functions(scale=SCALE))
    cells = [
        {"cell": "a", "version": 1, "magic": "%%tc", "source": SCALE},
        {"cell": "b", "version": 2, "magic": "%%tc", "source": CALLER},
        {"cell": "c", "version": 3, "magic": "%%sac", "source": "int f(int a) { return b; }"},
    ]
    told = ask(kind="inspect", what="cells", source="", magic="", cells=cells, shell=shell)["inspect"]
    assert [row["defs"][0]["state"] for row in told["cells"]] == ["bound", "analysed", "failing"]
    assert told["package"] == tc.__version__
    assert told["engine"]["target"] in ("cpu", "cuda", "interpreter")
    assert told["others"] == []


def test_settings_of_the_shell_count_like_options():
    class Magics:
        strict, target = True, "interpreter"

    shell = Shell(**functions(scale=SCALE))
    shell.tc_jupyter_magics = Magics()
    cells = [{"cell": "a", "version": 1, "magic": "%%tc", "source": SCALE}]
    told = ask(kind="inspect", what="cells", source="", magic="", cells=cells, shell=shell)["inspect"]
    assert told["cells"][0]["defs"][0]["state"] == "stale"


def test_keywords_carry_the_options_of_the_magic():
    told = ask(kind="keywords", source="", cell="")["keywords"]
    assert told["package"] == tc.__version__
    options = {option["name"]: option for option in told["options"]}
    assert options["--strict"]["parameter"] is None
    assert options["--allow"]["parameter"] == "CODE"
    assert options["--target"]["documentation"]


# failures ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, 3, "text", [], [HEAD], True])
def test_messages_that_are_no_objects(data):
    reply = Channel(Shell()).answer(data)
    assert reply["kind"] == "error"
    assert reply["error"]["code"] == "bad-request"
    assert reply["id"] is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"v": 2}, "version"),
        ({"v": "1"}, "bad-request"),
        ({"kind": "dance"}, "unknown-kind"),
        ({"kind": None}, "bad-request"),
        ({"id": 3}, "bad-request"),
        ({"version": True}, "bad-request"),
        ({"source": None}, "bad-request"),
        ({"magic": 1}, "bad-request"),
        ({"source": "x" * 1_000_001}, "too-large"),
        ({"kind": "hover"}, "bad-request"),
        ({"kind": "hover", "position": {"line": 0}}, "bad-request"),
        ({"kind": "hover", "position": {"line": 0.5, "character": 1}}, "bad-request"),
        ({"kind": "hover", "position": [0, 1]}, "bad-request"),
        ({"kind": "rename", "position": START, "name": 7}, "bad-request"),
        ({"kind": "inspect"}, "bad-request"),
        ({"kind": "inspect", "what": "colours"}, "unknown-kind"),
        ({"kind": "inspect", "what": "cells"}, "bad-request"),
        ({"kind": "inspect", "what": "cells", "cells": [4]}, "bad-request"),
        ({"kind": "inspect", "what": "code", "name": "scale", "form": "pascal"}, "unknown-kind"),
        ({"kind": "inspect", "what": "code", "name": 4, "form": "loops"}, "bad-request"),
        ({"kind": "inspect", "what": "schedule", "name": "scale", "sizes": {"N": "8"}}, "bad-request"),
        ({"kind": "inspect", "what": "schedule", "name": "scale", "schedule": [1]}, "bad-request"),
        ({"earlier": "cells"}, "bad-request"),
        ({"earlier": [{"cell": "a"}]}, "bad-request"),
    ],
)
def test_requests_that_cannot_be_answered(changes, code):
    reply = ask(**changes)
    assert (reply["kind"], reply["error"]["code"]) == ("error", code)
    assert reply["error"]["message"]
    assert "\n" not in reply["error"]["message"]
    assert reply["id"] == (HEAD["id"] if "id" not in changes else None)


def test_null_means_absent():
    assert ask(earlier=None)["kind"] == "check"
    assert ask(kind="inspect", what="schedule", name="scale", sizes=None, schedule=None)["kind"] == "inspect"


def test_a_failure_of_the_package_is_a_reply(monkeypatch, capsys):
    def broken(*args, **kwargs):
        raise RecursionError("deep")

    monkeypatch.setattr(ide, "check", broken)
    reply = ask()
    assert reply["error"]["code"] == "internal"
    assert reply["error"]["message"] == "the analysis failed: RecursionError"
    assert reply["error"]["request"] == "check"
    assert capsys.readouterr() == ("", "")


def test_half_characters_can_be_sent_back():
    reply = ask(kind="format", source="# \ud83d\ndef f(float(N) X) -> (Y) { Y(i) = X(i) }", id="\udc00")
    assert reply["format"]["text"].startswith("# \ufffd\n")
    json.dumps(reply, ensure_ascii=False).encode()


def test_a_fault_in_the_text_is_an_answer_and_prints_nothing(capsys):
    for source in ("", "def", "def f(float(N) X) -> (Y) { Y(i) = X(i", "\x00", "[" * 5000):
        for kind in ("check", "hover", "complete", "signature", "definition", "rename", "format"):
            assert ask(kind=kind, source=source, position=START)["kind"] == kind
    assert capsys.readouterr() == ("", "")


def test_answers_write_nothing_to_the_namespace():
    shell = Shell(**functions(scale=SCALE))
    before = dict(shell.user_ns)
    for what in ({"what": "code", "name": "caller", "form": "loops"}, {"what": "schedule", "name": "caller"}):
        assert ask(kind="inspect", source=CALLER, shell=shell, **what)["kind"] == "inspect"
    assert shell.user_ns == before


def test_answers_beside_a_cell_that_binds_names():
    shell = Shell(**functions(scale=SCALE))
    channel, done = Channel(shell), threading.Event()

    def bind():
        number = 0
        while not done.is_set():
            number += 1
            shell.user_ns[f"name{number % 5000}"] = number

    thread = threading.Thread(target=bind)
    thread.start()
    try:
        kinds = {channel.answer({**HEAD, "source": CALLER + " " * n})["kind"] for n in range(30)}
    finally:
        done.set()
        thread.join()
    assert kinds == {"check"}


# the life of the comm ------------------------------------------------------------------------------------------------------------


def test_without_a_kernel_no_comm_is_opened(comms):
    shell = Shell()
    shell.kernel = None
    open_channel(shell)
    assert comms == []
    assert front_end().startswith("none")


def test_open_answer_close(comms):
    open_channel(Shell())
    (made,) = comms
    assert made.target_name == "tc_jupyter"
    assert made.data == {"v": VERSION, "package": tc.__version__}
    assert front_end().startswith("none attached")
    made.handler({"content": {"data": HEAD}})
    made.handler({"content": {"data": {**HEAD, "kind": "nothing"}}})
    made.handler({})
    assert [reply["kind"] for reply in made.sent] == ["check", "error", "error"]
    close_channel()
    assert made.closed
    made.handler({"content": {"data": HEAD}})
    assert len(made.sent) == 3


def test_loading_again_replaces_the_comm(comms):
    open_channel(Shell())
    open_channel(Shell())
    assert [made.closed for made in comms] == [True, False]


def test_a_page_tells_what_it_is(comms):
    open_channel(Shell())
    client = {"package": tc.__version__, "application": "JupyterLab 4.6.6"}
    comms[0].handler({"content": {"data": {**HEAD, "kind": "keywords", "source": "", "client": client}}})
    assert front_end() == f"JupyterLab 4.6.6 (tc_jupyter {tc.__version__})"
    comms[0].handler(
        {"content": {"data": {**HEAD, "kind": "keywords", "source": "", "client": {**client, "package": "0.0.9"}}}}
    )
    assert "update" in front_end()
    open_channel(Shell())
    assert front_end().startswith("none attached")


def test_status_line_of_the_magic_tells_the_front_end(session):
    session("%tc")
    assert "front end" in session.out
    assert channel_module.front_end() in session.out


def test_a_real_kernel_answers():
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        opened: list[dict] = []
        shown: list[dict] = []

        def look(message):
            kind = message["header"]["msg_type"]
            (opened if kind in ("comm_open", "comm_msg", "comm_close") else shown).append(message)

        client.execute_interactive("%load_ext tc_jupyter", timeout=600, output_hook=look)
        (comm,) = [m["content"] for m in opened if m["header"]["msg_type"] == "comm_open"]
        assert comm["data"] == {"v": 1, "package": tc.__version__}
        sent = client.session.msg("comm_msg", {"comm_id": comm["comm_id"], "data": HEAD})
        client.shell_channel.send(sent)
        reply = None
        while reply is None:
            message = client.get_iopub_msg(timeout=600)
            if message["header"]["msg_type"] == "comm_msg":
                reply = message["content"]["data"]
            elif message["header"]["msg_type"] in ("stream", "error"):
                shown.append(message)
        assert reply["id"] == HEAD["id"]
        assert reply["analysis"]["functions"][0]["name"] == "scale"
        assert [m for m in shown if m["header"]["msg_type"] in ("stream", "error")] == []
        client.execute_interactive("%reload_ext tc_jupyter\n%unload_ext tc_jupyter", timeout=600, output_hook=look)
        kinds = [m["header"]["msg_type"] for m in opened]
        assert kinds == ["comm_open", "comm_close", "comm_open", "comm_close"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
