"""A language server for `.tc` and `.sac` files: `tc-jupyter lsp` speaks the Language Server Protocol on standard input and output.

Comes in: requests of an editor. Goes out: the answers of `ide`, with positions as the editor counts them. A file calls functions of
its own, and of files that it uses: those are read as the editor has them, else from below the folder of the workspace. Needs the
extra `lsp` (pygls).

Worked example: with `C(i) = A(i, k)` in the text, the editor gets the message TC204 and a quick fix that writes `+=!`.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from tc_jupyter import ide
from tc_jupyter.compiler.uses import Used

LONGEST = 200_000
"""Code points of a text that is answered about; above that there is a message only."""
LONGEST_MESSAGE = 1 << 26
"""Bytes of a message of an editor, which has a text, or a change of one."""
_LONGEST_HEADER = 1 << 12

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
TOKENS = {
    "function": "function",
    "def": "function",
    "tensor": "variable",
    "index": "parameter",
    "size": "typeParameter",
    "scalar": "variable",
    "let": "variable",
    "type": "type",
}
"""What editors call a kind of name."""
SYMBOLS = {"def": types.SymbolKind.Function, "tensor": types.SymbolKind.Array, "scalar": types.SymbolKind.Number}
COMPLETIONS = {
    "index": types.CompletionItemKind.Variable,
    "tensor": types.CompletionItemKind.Field,
    "size": types.CompletionItemKind.TypeParameter,
    "scalar": types.CompletionItemKind.Constant,
    "def": types.CompletionItemKind.Function,
    "function": types.CompletionItemKind.Function,
    "file": types.CompletionItemKind.File,
    "keyword": types.CompletionItemKind.Keyword,
    "type": types.CompletionItemKind.Class,
}

LEGEND = types.SemanticTokensLegend(sorted(set(TOKENS.values())), [types.SemanticTokenModifiers.Declaration])


def _path(uri: str) -> Path | None:
    """The path of a text; `None` of one that is no file."""
    name = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return None if name is None else Path(name)


class Document:
    """A text of an editor with positions in both ways of counting: code points here, what was agreed on there."""

    def __init__(self, document: TextDocument) -> None:
        self.document = document
        self.language = "sac" if document.uri.endswith(".sac") or document.language_id == "sac" else "tc"
        self.text = document.source
        self.lines = document.lines or [""]
        self.files = self._files()
        self.known = self.files.used.functions

    def _files(self) -> ide.Files:
        """The files that the text uses, if it is one itself."""
        path = _path(self.document.uri)
        if path is None or len(self.text) > LONGEST:
            return ide.Files()
        root = _path(server.workspace.root_uri or "")
        below = root if root is not None and path.is_relative_to(root) else path.parent
        return ide.look(self.text, self.language, path.parent, below, path, _open_text)

    def location(self, path: Path, span: Mapping[str, Any]) -> types.Location:
        """A place in a file that the text uses."""
        lines = self._lines_of(path, self.files.used)
        ends = [types.Position(span[end]["line"], span[end]["character"]) for end in ("start", "end")]
        codec = self.document.position_codec
        start, end = (codec.position_to_client_units(lines, each) for each in ends)
        return types.Location(uris.from_fs_path(str(path)) or "", types.Range(start, end))

    def _lines_of(self, path: Path, used: Used) -> list[str]:
        for _, file in used.files:
            if file is not None:
                found = file.source.text.splitlines(True) if file.path == path else self._lines_of(path, file.used)
                if found:
                    return found
        return []

    def inside(self, position: types.Position) -> dict[str, int]:
        """A position of the editor."""
        found = self.document.position_codec.position_from_client_units(self.lines, position)
        return {"line": found.line, "character": found.character}

    def outside(self, position: Mapping[str, int]) -> types.Position:
        """A position for the editor; in a line of ASCII every way of counting is the same, and most lines are."""
        here = types.Position(position["line"], position["character"])
        line = self.lines[here.line] if here.line < len(self.lines) else ""
        if line.isascii() and here.character <= len(line):
            return here if line else types.Position(min(here.line, len(self.lines)), 0)
        return self.document.position_codec.position_to_client_units(self.lines, here)

    def range(self, span: Mapping[str, Any]) -> types.Range:
        """A span for the editor."""
        return types.Range(self.outside(span["start"]), self.outside(span["end"]))

    def edits(self, edits: Sequence[Mapping[str, Any]]) -> list[types.TextEdit]:
        """Edits for the editor."""
        return [types.TextEdit(self.range(each["span"]), each["text"]) for each in edits]

    def edit(self, edits: Sequence[Mapping[str, Any]]) -> types.WorkspaceEdit:
        """Edits of this text alone."""
        return types.WorkspaceEdit({self.document.uri: self.edits(edits)})

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """What there is to say about the text."""
        return ide.messages(self.text, self.language, self.known, self.files)


server = LanguageServer("tc-jupyter", "1", types.TextDocumentSyncKind.Incremental)


def _document(uri: str) -> Document:
    return Document(server.workspace.get_text_document(uri))


def _open_text(path: Path) -> str | None:
    """The text of a file as the editor has it."""
    for uri, document in server.workspace.text_documents.items():
        if (own := _path(uri)) is not None and own.resolve() == path:
            return document.source
    return None


# messages ------------------------------------------------------------------------------------------------------------------------


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
async def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    """Send the messages about a text that was opened or changed, and about those that use it."""
    _later.begin()
    await _publish(_document(params.text_document.uri))
    path = _path(params.text_document.uri)
    for uri in list(server.workspace.text_documents):
        if path is not None and (other := _document(uri)).files.used.has(path.resolve()):
            await _publish(other)


class _Tidying:
    """Collects what is garbage when nobody types, in place of in the middle of an answer (see `_IDLE`)."""

    def __init__(self) -> None:
        self.handle: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Collect some time after the last change."""
        if self.handle is not None:
            self.handle.cancel()
        self.handle = asyncio.get_running_loop().call_later(_IDLE, gc.collect)


_IDLE = 5.0
"""Seconds without a change. Collecting all generations, with the analysis of 117 defs, took 60 to 230 ms (busy Zen 4), and came
with every fifth answer that lists a whole text."""
_RARELY = (700, 10, 1_000)
"""Thresholds of the collector: all generations only after some million objects more."""
_later = _Tidying()


async def _prepare(document: Document) -> None:
    """Look at the defs of a text one after the other: in between, questions about one of them are answered."""
    begun = time.monotonic()
    for _ in ide.prepare(document.text, document.language, document.known):
        if time.monotonic() - begun > _TURN:
            await asyncio.sleep(_PAUSE)
            begun = time.monotonic()


_TURN, _PAUSE = 0.01, 0.001
"""Seconds after which others have their turn, and in which the parts of a message are read, one after the other."""


async def _publish(document: Document) -> None:
    uri = document.document.uri
    if len(document.text) <= LONGEST:
        await _prepare(document)
    now = server.workspace.text_documents.get(uri)
    if now is None or now.source != document.text:  # closed, or changed meanwhile
        return
    if len(document.text) > LONGEST:
        place = types.Range(types.Position(0, 0), types.Position(0, 0))
        found = [types.Diagnostic(place, f"the file has more than {LONGEST:,} characters: it is not analysed")]
    else:
        found = [_diagnostic(document, each) for each in document.messages]
    version = document.document.version
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def forget(params: types.DidCloseTextDocumentParams) -> None:
    """Take the messages about a text away."""
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))


def _diagnostic(document: Document, found: Mapping[str, Any]) -> types.Diagnostic:
    help_text = f"\nhelp: {found['help']}" if found["help"] else ""
    related = [
        types.DiagnosticRelatedInformation(_location(document, label), label["text"] or found["name"])
        for label in found["labels"]
    ]
    return types.Diagnostic(
        document.range(found["span"]),
        found["message"] + help_text,
        SEVERITIES[found["severity"]],
        found["code"],
        source="tc-jupyter",
        related_information=related,
    )


def _location(document: Document, label: Mapping[str, Any]) -> types.Location:
    if "file" in label:
        return document.location(Path(label["file"]).absolute(), label["span"])
    return types.Location(document.document.uri, document.range(label["span"]))


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
    """The fixes of the messages at a place."""
    document = _document(params.text_document.uri)
    found: list[types.CodeAction] = []
    for message in document.messages:
        place = document.range(message["span"])
        if message["fix"] is None or place.end < params.range.start or params.range.end < place.start:
            continue
        edit = document.edit(message["fix"]["edits"])
        said = [_diagnostic(document, message)]
        title = str(message["fix"]["title"])
        found.append(types.CodeAction(title, types.CodeActionKind.QuickFix, said, is_preferred=True, edit=edit))
    return found


# names ---------------------------------------------------------------------------------------------------------------------------


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover | None:
    """What stands at a position, and for an index why its range is what it is."""
    document = _document(params.text_document.uri)
    found = ide.hover(
        document.text, document.inside(params.position), document.language, document.known, document.files
    )
    if found is None:
        return None
    lines = [f"```{document.language}\n{found['title']}\n```", *found["lines"], *filter(None, [found["documentation"]])]
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(lines)), document.range(found["span"])
    )


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["(", ",", " ", '"', "/"]))
def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
    """What may stand at a position."""
    document = _document(params.text_document.uri)
    found = ide.complete(
        document.text, document.inside(params.position), document.language, document.known, document.files
    )
    if found is None:
        return []
    place = document.range(found["span"])
    return [
        types.CompletionItem(
            item["label"],
            kind=COMPLETIONS.get(item["type"], types.CompletionItemKind.Text),
            detail=item.get("detail"),
            sort_text=f"{number:04}",
            text_edit=types.TextEdit(place, item.get("apply", item["label"])),
        )
        for number, item in enumerate(found["items"])
    ]


@server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(["(", ","]))
def signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    """The parameters of the call around a position."""
    document = _document(params.text_document.uri)
    found = ide.signature(
        document.text, document.inside(params.position), document.language, document.known, document.files
    )
    if found is None:
        return None
    parameters = [types.ParameterInformation((start, end)) for start, end in found["parameters"]]
    shown = types.SignatureInformation(found["label"], found["documentation"], parameters)
    return types.SignatureHelp([shown], 0, found["active"])


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    """Where a name is introduced."""
    document = _document(params.text_document.uri)
    found = ide.definition(
        document.text, document.inside(params.position), document.language, document.known, document.files
    )
    if found is not None and "file" in found:
        return document.location(Path(found["file"]), found["in_file"])
    if found is None or found["span"] is None:
        return None
    return types.Location(document.document.uri, document.range(found["span"]))


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(params: types.ReferenceParams) -> list[types.Location]:
    """All places of a name."""
    document = _document(params.text_document.uri)
    found = ide.references(document.text, document.inside(params.position), document.language, document.known)
    wanted = [each for each in found if params.context.include_declaration or not each["introduces"]]
    return [types.Location(document.document.uri, document.range(each["span"])) for each in wanted]


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
def prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
    """The name at a position, if it can be renamed."""
    document = _document(params.text_document.uri)
    found = ide.rename(document.text, document.inside(params.position), None, document.language, document.known)
    return None if found is None else document.range(found["span"])


@server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
    """Give a name another text, everywhere; a name that would mean something else is refused with a message."""
    document = _document(params.text_document.uri)
    found = ide.rename(
        document.text, document.inside(params.position), params.new_name, document.language, document.known
    )
    if found is not None and found["refused"]:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, found["refused"]))
        return None
    return None if found is None else document.edit(found["edits"])


# the whole text ------------------------------------------------------------------------------------------------------------------


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """Defs with their tensors."""
    document = _document(params.text_document.uri)
    await _prepare(document)
    return [_symbol(document, each) for each in ide.symbols(document.text, document.language)]


def _symbol(document: Document, found: Mapping[str, Any]) -> types.DocumentSymbol:
    children = [_symbol(document, each) for each in found.get("children", ())]
    whole, place = document.range(found["span"]), document.range(found["place"])
    return types.DocumentSymbol(found["name"], SYMBOLS[found["kind"]], whole, place, children=children)


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    """The text as `format_text` lays it out; a text with mistakes stays."""
    document = _document(params.text_document.uri)
    found = ide.format_text(document.text, document.language)
    if found["refused"] or found["text"] == document.text:
        return []
    return [types.TextEdit(types.Range(types.Position(0, 0), _end(document)), found["text"])]


def _end(document: Document) -> types.Position:
    last = document.lines[-1]
    if last.endswith(("\n", "\r")):
        return types.Position(len(document.lines), 0)
    return document.outside({"line": len(document.lines) - 1, "character": len(last)})


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
async def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
    """The ranges of each statement, at its end."""
    document = _document(params.text_document.uri)
    await _prepare(document)
    found: list[types.InlayHint] = []
    for each in ide.hints(document.text, document.language, document.known):
        place = document.outside(each["position"])
        if params.range.start <= place <= params.range.end:
            reasons = "\n".join(each["because"])
            found.append(types.InlayHint(place, each["text"], padding_left=True, tooltip=reasons))
    return found


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
async def semantic_tokens(params: types.SemanticTokensParams) -> types.SemanticTokens:
    """The kind of every name, as numbers relative to the name before."""
    document = _document(params.text_document.uri)
    await _prepare(document)
    data, line, start = list[int](), 0, 0
    for each in ide.colours(document.text, document.language, document.known):
        place = document.range(each["span"])
        here, character = place.start.line, place.start.character
        kind = LEGEND.token_types.index(TOKENS[each["kind"]])
        column = character - start if here == line else character
        data += [here - line, column, place.end.character - character, kind, int(each["introduces"])]
        line, start = here, character
    return types.SemanticTokens(data)


class _Input:
    """What an editor sends, in messages of a bounded length; behind one that is too long there is nothing more."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.refused = stream, ""

    def readline(self) -> bytes:
        """The next line of a header."""
        line = b"" if self.refused else self.stream.readline(_LONGEST_HEADER)
        found = re.match(rb"(?i)content-length:\s*(\d+)", line)
        if len(line) == _LONGEST_HEADER and not line.endswith(b"\n"):
            self.refused = f"a line of a header has more than {_LONGEST_HEADER:,} bytes"
        elif found is not None and (len(found[1]) > 18 or int(found[1]) > LONGEST_MESSAGE):
            self.refused = f"a message has more than {LONGEST_MESSAGE:,} bytes"
        return b"" if self.refused else line

    def read(self, count: int) -> bytes:
        """The body of a message."""
        return self.stream.read(count)


def main() -> str:
    """Serve on standard input and output until the editor ends; returns why the server ended before, if it did."""
    ide.hover("def f(float(N) X) -> (Y) { Y(i) = X(i) }", {"line": 0, "character": 27})  # loads what every answer needs
    gc.freeze()
    gc.set_threshold(*_RARELY)
    stream = _Input(sys.stdin.buffer)
    server.start_io(cast("BinaryIO", stream))
    return stream.refused
