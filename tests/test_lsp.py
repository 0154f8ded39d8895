"""The language server, asked as an editor asks it: through its standard input and output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

ROOT = Path(__file__).parents[1]
TEXT = """# 𝛼 is no name, but may stand in a comment
def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }
def rows(float(N, M) A) -> (S) {
    S(i) = A(i, j)  # 𝛽
}
"""


class Client:
    """A client that sends one message and reads until the answer comes; notifications are kept."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tc_jupyter.cli", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.number = 0
        self.told: list[dict[str, Any]] = []

    def send(self, *messages: dict[str, Any]) -> None:
        bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        self.process.stdin.write(b"".join(b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies))
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server ended"
        return json.loads(self.process.stdout.read(length))

    def ask(self, method: str, params: Any = None) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (answer := self.read()).get("id") != self.number or "method" in answer:
            self.told.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def tell(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def open(self, uri: str, text: str, language: str = "tc") -> list[dict[str, Any]]:
        """Open a text; returns its messages."""
        self.tell(
            "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}}
        )
        return self.messages(uri)

    def messages(self, uri: str) -> list[dict[str, Any]]:
        while True:
            found = self.read()
            if found.get("method") == "textDocument/publishDiagnostics" and found["params"]["uri"] == uri:
                return found["params"]["diagnostics"]
            self.told.append(found)


@pytest.fixture(scope="module")
def client():
    made = Client()
    made.capabilities = made.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
    made.tell("initialized", {})
    yield made
    made.ask("shutdown")
    made.tell("exit", None)
    assert made.process.wait(30) == 0


@pytest.fixture(scope="module")
def opened(client):
    client.found = client.open("file:///a.tc", TEXT)
    return client


def at(line: int, character: int, uri: str = "file:///a.tc") -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def column(line: int, text: str) -> int:
    """Where a part of a line begins, in units of UTF-16, as an editor counts."""
    return len(TEXT.split("\n")[line].partition(text)[0].encode("utf-16-le")) // 2


def whole(uri: str = "file:///a.tc") -> dict[str, Any]:
    return {"textDocument": {"uri": uri}}


def test_messages(opened):
    (found,) = opened.found
    assert (found["code"], found["severity"]) == ("TC204", 1)
    assert found["message"] == "`=` does not combine the values over `j`"
    assert found["range"] == span(3, 9, 10)
    assert found["relatedInformation"][0]["message"] == "`j` is not on the left"


def test_a_fix(opened):
    asked = {**whole(), "range": span(3, 9, 9), "context": {"diagnostics": []}}
    (found,) = opened.ask("textDocument/codeAction", asked)
    assert found["title"] == "replace `=` by `+=!`"
    assert found["edit"]["changes"] == {"file:///a.tc": [{"range": span(3, 9, 10), "newText": "+=!"}]}
    elsewhere = {**asked, "range": span(1, 0, 3)}
    assert opened.ask("textDocument/codeAction", elsewhere) == []


def test_hover_says_why(opened):
    found = opened.ask("textDocument/hover", at(1, column(1, "i) +=!")))
    assert "0 <= i < N - K + 1" in found["contents"]["value"]
    assert "because 0 <= i + k < N" in found["contents"]["value"]
    assert opened.ask("textDocument/hover", at(0, 5)) is None


def test_completion(opened):
    found = opened.ask("textDocument/completion", at(1, column(1, "k) * W")))
    by_name = {item["label"]: item for item in found}
    assert by_name["i"]["detail"] == "0 <= i < N - K + 1"
    assert by_name["rows"]["textEdit"]["newText"] == "rows("


def test_signature(opened):
    text = TEXT.replace("S(i) = A(i, j)", "S(i) +=! fma(A(i, j), ")
    opened.open("file:///s.tc", text)
    line = text.split("\n")[3]
    found = opened.ask("textDocument/signatureHelp", at(3, line.index("), ") + 3, "file:///s.tc"))
    assert found["signatures"][0]["label"].startswith("fma(")
    assert found["activeParameter"] == 1


def test_definition_references_and_rename(opened):
    place = at(1, column(1, "k) * W"))
    found = opened.ask("textDocument/references", {**place, "context": {"includeDeclaration": True}})
    places = [span(1, column(1, "k) * W"), column(1, "k) * W") + 1), span(1, column(1, "k) }"), column(1, "k) }") + 1)]
    assert [each["range"] for each in found] == places
    size = at(1, column(1, "N) X"))
    assert opened.ask("textDocument/definition", size)["range"]["start"] == size["position"]
    assert opened.ask("textDocument/prepareRename", place) == places[0]
    edits = opened.ask("textDocument/rename", {**place, "newName": "tap"})["changes"]["file:///a.tc"]
    assert [(each["range"], each["newText"]) for each in edits] == [(each, "tap") for each in places]
    assert opened.ask("textDocument/rename", {**place, "newName": "i"}) is None
    assert "`i` is in scope already" in opened.told[-1]["params"]["message"]


def test_symbols(opened):
    found = opened.ask("textDocument/documentSymbol", whole())
    assert [each["name"] for each in found] == ["conv", "rows"]
    assert [each["name"] for each in found[0]["children"]] == ["X", "W", "Y"]
    assert found[1]["range"]["end"] == {"line": 4, "character": 1}


def test_format(opened):
    opened.open("file:///f.tc", "def f(float(N) X) -> (Y) {\nY(i)=X(i)\n}\n")
    options = {"options": {"tabSize": 4, "insertSpaces": True}}
    (found,) = opened.ask("textDocument/formatting", {**whole("file:///f.tc"), **options})
    assert found["newText"] == "def f(float(N) X) -> (Y) {\n    Y(i) = X(i)\n}\n"
    assert found["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}}
    opened.open("file:///b.tc", "def f(float(N) X -> (Y) {")
    assert opened.ask("textDocument/formatting", {**whole("file:///b.tc"), **options}) == []


def test_hints_show_ranges(opened):
    found = opened.ask("textDocument/inlayHint", {**whole(), "range": span(1, 0, 99)})
    assert [each["label"] for each in found] == ["0 <= i < N - K + 1, 0 <= k < K"]
    assert found[0]["position"] == {"line": 1, "character": column(1, " }")}


def test_semantic_tokens(opened):
    names = opened.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    data = opened.ask("textDocument/semanticTokens/full", whole())["data"]
    assert len(data) % 5 == 0
    line = start = 0
    found = []
    for delta, column_, length, kind, declared in zip(*(data[k::5] for k in range(5)), strict=True):
        line, start = line + delta, column_ if delta else start + column_
        found.append((line, start, length, names[kind], declared))
    assert (1, 4, 4, "function", 1) in found
    assert (1, column(1, "N) X"), 1, "typeParameter", 0) in found
    assert (1, column(1, "X(i + k)"), 1, "variable", 0) in found
    assert {kind for *_, kind, _ in found} == {"function", "typeParameter", "variable", "parameter"}


def test_positions_are_those_of_utf_16(opened):
    text = "def f(float(N) X) -> (Y) { # 𝛼𝛼\n    Y(i) = X(i)  Z = X(i) # 𝛽\n}"
    found = opened.open("file:///u.tc", text)
    opened.tell(
        "textDocument/didChange",
        {
            "textDocument": {"uri": "file:///u.tc", "version": 2},
            "contentChanges": [{"range": span(0, 27, 33), "text": "# ok"}],
        },
    )
    again = opened.messages("file:///u.tc")
    assert [each["range"] for each in found] == [each["range"] for each in again]


def test_the_other_language(opened):
    sac = "double[*] twice(double[*] a) { return { iv -> 2.0 * a[iv] }; }\n"
    assert opened.open("file:///a.sac", sac, "sac") == []
    found = opened.open("file:///b.sac", sac.replace("a[iv]", "b[iv]"), "sac")
    assert [each["code"] for each in found] == ["TC201"]


def test_a_file_that_is_closed_has_no_messages(opened):
    opened.open("file:///c.tc", TEXT)
    opened.tell("textDocument/didClose", whole("file:///c.tc"))
    assert opened.messages("file:///c.tc") == []


def test_a_file_that_is_too_long_is_told(opened):
    (found,) = opened.open("file:///l.tc", "#" + "x" * 200_001)
    assert "it is not analysed" in found["message"]


def test_a_def_of_a_long_file_is_answered_before_all_are_read(opened):
    head = "def f{n}(float(N, M) X, float(K) W) -> (Y) {{ Y(i, j) +=! X(i + k, j) * W(k) * {n} }}\n"
    text = "".join(head.format(n=n) for n in range(150))
    document = {"uri": "file:///long.tc", "languageId": "tc", "version": 1, "text": text}
    changed = {"contentChanges": [{"text": text + "def g(float(N) X) -> (Y) { Y(i) = X(j) }\n"}]}
    opened.send(
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        {
            "id": "early",
            "method": "textDocument/hover",
            "params": at(149, text.split("\n")[149].index("i,"), document["uri"]),
        },
        {
            "method": "textDocument/didChange",
            "params": {"textDocument": {"uri": document["uri"], "version": 2}, **changed},
        },
    )
    answer = opened.read()
    assert answer["id"] == "early"
    assert "0 <= i < N - K + 1" in answer["result"]["contents"]["value"]
    assert [each["code"] for each in opened.messages(document["uri"])] == ["TC302"]  # of the text as it is now


def test_files_that_a_file_uses(opened, tmp_path):
    kernels, caller = tmp_path / "kernels.tc", (tmp_path / "f.tc").as_uri()
    kernels.write_text("# 𝛼\ndef twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }\n")
    text = 'use "kernels.tc"\ndef f(float(N) X) -> (Y) { A = twice(X)  Y(i) = A(i) }\n'
    assert opened.open(caller, text) == []
    place = at(1, text.split("\n")[1].index("twice") + 1, caller)
    assert "defined in" in opened.ask("textDocument/hover", place)["contents"]["value"]
    for position in (place, at(0, 8, caller)):
        assert opened.ask("textDocument/definition", position)["uri"] == kernels.as_uri()
    assert opened.ask("textDocument/definition", place)["range"] == span(1, 4, 9)
    items = opened.ask("textDocument/completion", at(0, 6, caller))
    assert [each["label"] for each in items] == ["kernels.tc"]
    # what the editor has of the other file counts before it is saved
    wrong = "def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i, j) }"
    assert [each["code"] for each in opened.open(kernels.as_uri(), wrong)] == ["TC202"]
    (found,) = opened.messages(caller)
    assert found["code"] == "TC681"
    assert found["relatedInformation"][0]["location"] == {"uri": kernels.as_uri(), "range": span(0, 42, 49)}
    opened.tell("textDocument/didClose", whole(kernels.as_uri()))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"Content-Length: 99999999999\r\n\r\n{}", "a message has more than 67,108,864 bytes"),
        (b"content-length: " + b"9" * 4000 + b"\r\n\r\n", "a message has more than"),
        (b"x" * 100_000, "a line of a header has more than 4,096 bytes"),
    ],
    ids=["long", "endless", "no header"],
)
def test_what_is_no_message_ends_the_server(sent, why):
    command = [sys.executable, "-m", "tc_jupyter.cli", "lsp"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=sent, capture_output=True, env=environment, timeout=100, check=False)
    assert done.returncode == 2
    assert f"tc-jupyter: the server ends: {why}" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


NEOVIM = """
local client = (vim.lsp.start_client or vim.lsp.start)({ name = "tc-jupyter", cmd = vim.json.decode(vim.env.TC_SERVER) })
vim.cmd("edit kernels.tc")
vim.lsp.buf_attach_client(0, client)
local function messages() return vim.tbl_map(function(d) return { d.code, d.lnum, d.col, d.end_col } end, vim.diagnostic.get(0)) end
local function ask(method, line, column, more)
  local params = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = line, character = column } }
  return vim.lsp.buf_request_sync(0, method, vim.tbl_extend("force", params, more or {}), 100000)[client].result
end
assert(vim.wait(100000, function() return #messages() > 0 end), "no message came")
local told = { messages = messages(), hover = ask("textDocument/hover", 0, 44).contents.value }
local here = { start = { line = 1, character = 38 }, ["end"] = { line = 1, character = 39 } }
local fix = ask("textDocument/codeAction", 1, 38, { range = here, context = { diagnostics = {} } })[1]
vim.lsp.util.apply_workspace_edit(fix.edit, "utf-16")
assert(vim.wait(100000, function() return #messages() == 0 end), "the message stayed")
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", 0, 44, { newName = "row" }), "utf-16")
local options = { tabSize = 4, insertSpaces = true }
vim.lsp.util.apply_text_edits(ask("textDocument/formatting", 0, 0, { options = options }), vim.api.nvim_get_current_buf(), "utf-16")
told.text = vim.api.nvim_buf_get_lines(0, 0, -1, false)
io.stdout:write(vim.json.encode(told))
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_messages_and_makes_edits(tmp_path):
    lines = (
        "def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }",
        "def rows(float(N, M) A) -> (S) { S(i) = A(i, j) }",
    )
    (tmp_path / "kernels.tc").write_text("\n".join(lines) + "\n")
    (tmp_path / "ask.lua").write_text(NEOVIM)
    server = json.dumps([sys.executable, "-m", "tc_jupyter.cli", "lsp"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TC_SERVER": server, "HOME": str(tmp_path)}
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile ask.lua", "-c", "qa!"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["messages"] == [["TC204", 1, 38, 39]]
    assert "because 0 <= i + k < N" in told["hover"]
    assert told["text"] == [
        "def conv(float(N) X, float(K) W) -> (Y) {",
        "    Y(row) +=! X(row + k) * W(k)",
        "}",
        "",
        "def rows(float(N, M) A) -> (S) {",
        "    S(i) +=! A(i, j)",
        "}",
    ]
