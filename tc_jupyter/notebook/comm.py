"""The channel to the front end: the kernel opens a comm, the page asks, `ide` answers. `labextension/PROTOCOL.md` is the contract.

One reply for each request, in any order; a failure is a reply of kind `error`. The handler may run on a thread of its own beside a
running cell: it reads the namespace, writes nothing to it, prints nothing and starts no GPU.

Worked example: `{"v": 1, "kind": "check", "id": "a", "cell": "c", "version": 1, "magic": "%%tc", "source": "def ..."}` is answered
with `{"v": 1, "kind": "check", "id": "a", "cell": "c", "version": 1, "analysis": {...}}`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, cast

from tc_jupyter import __version__, ide
from tc_jupyter.compiler.uses import shown_path
from tc_jupyter.diagnostics.codes import ALL

from .names import known_functions
from .options import parser

TARGET = "tc_jupyter"
VERSION = 1
LONGEST = 1_000_000
"""Code points of a source that is answered."""

Json: TypeAlias = dict[str, Any]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Refused(Exception):
    """A request that gets an error; `code` is one of section 4.10 of the contract."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.help = code, message, help


# requests ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a magic line that matter here; what cannot be read is left out."""

    strict: bool = False
    allow: tuple[str, ...] = ()
    target: str | None = None


def read_options(magic: str) -> Options:
    """The options of `%%tc --strict --allow TC323`."""
    try:
        words = shlex.split(magic, comments=True)[1:]
    except ValueError:
        words = magic.split()[1:]
    strict, allow, target = False, list[str](), None
    queue = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for word, following in pairwise([*queue, ""]):
        if word == "--strict":
            strict = True
        elif word == "--allow" and following.upper() in ALL:
            allow.append(following.upper())
        elif word == "--target" and following in ("cpu", "cuda", "interpreter"):
            target = following
    return Options(strict, tuple(allow), target)


def language_of(magic: str) -> str:
    """`sac` for a line that starts with `%%sac`, else `tc`."""
    return "sac" if re.match(r"%%sac(?:\s|$)", magic) else "tc"


def _field(request: Mapping[str, Any], name: str, kind: type[Any], default: Any = None) -> Any:
    """A field of a type; a missing one or `null` is `default`, or a mistake where there is none."""
    value = request.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {str: "a string", int: "an integer", list: "an array", dict: "an object"}
        state = "is missing" if name not in request else f"is not {words[kind]}"
        raise Refused("bad-request", f"`{name}` {state}")
    return value


def _source(request: Mapping[str, Any]) -> str:
    text = cast("str", _field(request, "source", str))
    if len(text) > LONGEST:
        raise Refused("too-large", f"the text has {len(text)} characters; {LONGEST} are the most", "split the cell")
    return text


def _position(request: Mapping[str, Any]) -> dict[str, int]:
    position = _field(request, "position", dict)
    return {name: cast("int", _field(position, name, int)) for name in ("line", "character")}


def _numbers(request: Mapping[str, Any]) -> dict[str, int]:
    sizes = _field(request, "sizes", dict, {})
    return {str(name): cast("int", _field(sizes, name, int)) for name in sizes}


def _steps(request: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    if request.get("schedule") is None:
        return None
    steps = _field(request, "schedule", list)
    for step in steps:
        if not isinstance(step, dict):
            raise Refused("bad-request", "`schedule` is not an array of objects")
        _field(cast("Json", step), "primitive", str)
        _field(cast("Json", step), "arguments", list, [])
        _field(cast("Json", step), "options", dict, {})
    return steps


def _earlier(request: Mapping[str, Any]) -> list[Json]:
    cells = _field(request, "earlier", list, [])
    for cell in cells:
        if not isinstance(cell, dict):
            raise Refused("bad-request", "`earlier` is not an array of objects")
        _field(cast("Json", cell), "magic", str)
        _source(cast("Json", cell))
    return cells


def _clean(value: Any) -> Any:
    """JSON data without half surrogate pairs, which no message can carry back; each counts as one character before and after."""
    match value:
        case str():
            return _LONE_SURROGATE.sub("\ufffd", value)
        case list():
            return [_clean(item) for item in cast("list[Any]", value)]
        case dict():
            return {_clean(key): _clean(item) for key, item in cast("Json", value).items()}
        case _:
            return value


# the channel ---------------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Channel:
    """One open comm.

    Attributes:
        shell: the shell whose namespace is read.
        comm: the comm; `None` before it is opened and in tests.
        clients: application of each page that attached -> version of its package.
    """

    shell: Any
    comm: Any = None
    clients: dict[str, str] = field(default_factory=dict[str, str])

    def open(self) -> None:
        """Open the comm. Pages that listen attach at once, others when they look for it."""
        from comm import create_comm  # noqa: PLC0415  # pyright: ignore  (only a kernel needs it; pyright finds this file)

        self.comm = create_comm(target_name=TARGET, data={"v": VERSION, "package": __version__})
        self.comm.on_msg(self.receive)

    def close(self) -> None:
        """Close the comm."""
        comm, self.comm = self.comm, None
        if comm is not None:
            comm.close()

    def receive(self, message: Mapping[str, Any]) -> None:
        """Answer one message of the page."""
        comm = self.comm
        if comm is not None:
            comm.send(self.answer(message.get("content", {}).get("data")))

    def answer(self, data: Any) -> Json:
        """The reply to a request, whatever the request is."""
        request = cast("Json", _clean(data)) if isinstance(data, dict) else {}
        kinds = {"id": str, "cell": str, "version": int}
        echo = {name: v if isinstance(v := request.get(name), kind) else None for name, kind in kinds.items()}
        kind = request.get("kind")
        head: Json = {"v": VERSION, "kind": kind, **echo}
        try:
            return head | self._answer(request, kind, data)
        except Refused as problem:
            error: Json = {"code": problem.code, "message": problem.message, "help": problem.help}
        except ide.UnknownForm as problem:
            error = {"code": "unknown-kind", "message": str(problem.args[0]), "help": None}
        except Exception as problem:  # a failure of the package: told in the reply, never on a stream
            error = {"code": "internal", "message": f"the analysis failed: {type(problem).__name__}", "help": _REPORT}
        return head | {"kind": "error", "error": {**error, "request": kind if isinstance(kind, str) else None}}

    def _answer(self, request: Json, kind: Any, data: Any) -> Json:
        if not isinstance(data, dict):
            raise Refused("bad-request", "the message is not a JSON object")
        version = _field(request, "v", int)
        if version != VERSION:
            raise Refused("version", f"this package speaks version {VERSION} of the protocol, not {version}", _UPDATE)
        if not isinstance(kind, str):
            raise Refused("bad-request", "`kind` is missing or not a string")
        for name, wanted in (("id", str), ("cell", str), ("version", int)):
            _field(request, name, wanted)
        answers: dict[str, Callable[[Json, str, str], Json]] = {
            "check": self._check,
            "hover": self._at("hover", ide.hover),
            "complete": self._at("completions", ide.complete),
            "signature": self._at("signature", ide.signature),
            "definition": self._definition,
            "references": self._references,
            "rename": self._rename,
            "format": self._format,
            "inspect": self._inspect,
            "keywords": self._keywords,
        }
        if kind not in answers:
            raise Refused("unknown-kind", f"there is no request `{kind[:40]}`")
        magic = cast("str", _field(request, "magic", str))
        _source(request)
        return answers[kind](request, language_of(magic), magic)

    # what a text may call --------------------------------------------------------------------------------------------------------

    def _namespace(self) -> dict[str, Any]:
        """What the names of the namespace are now; a running cell may add more."""
        return {} if self.shell is None else self.shell.user_ns.copy()

    def _cells(self) -> Mapping[str, int]:
        """The number of the cell that defined a name last."""
        return getattr(getattr(self.shell, "tc_jupyter_magics", None), "cells", {})

    def _functions(self) -> dict[str, Any]:
        """The functions of the namespace, by the names they have there."""
        return known_functions(self._namespace())

    def _known(self, request: Json) -> dict[str, Any]:
        """Functions that the text may call."""
        return self._known_and_above(request)[0]

    def _known_and_above(self, request: Json) -> tuple[dict[str, Any], set[str], ide.Files]:
        """Functions that the text may call, the names that cells above define, and the files that the text uses.

        Those of its files come first, then those of the namespace, then those of cells above that were not run.
        A name that Python has given to something else, or has deleted, is no function until its cell is run again.
        """
        names = self._namespace()
        bound, taken = known_functions(names), names.keys() | self._cells().keys()
        found: dict[str, Any] = {}
        above: set[str] = set()
        for cell in _earlier(request):
            there = _look(cell["source"], cell["magic"]).used.functions
            defined = ide.exports(cell["source"], language_of(cell["magic"]), {**found, **bound, **there})
            above |= defined.keys()
            found |= {name: value for name, value in defined.items() if name not in taken}
        used = _look(request["source"], request["magic"])
        return {**found, **bound, **used.used.functions}, above, used

    # answers ---------------------------------------------------------------------------------------------------------------------

    def _defaults(self, options: Options) -> Options:
        """Options with the settings of the shell (`%config TcMagics`) where the line says nothing."""
        magics = getattr(self.shell, "tc_jupyter_magics", None)
        strict = options.strict or bool(getattr(magics, "strict", False))
        return Options(strict, options.allow, options.target or str(getattr(magics, "target", "")) or None)

    def _check(self, request: Json, language: str, magic: str) -> Json:
        options = self._defaults(read_options(magic))
        known, above, used = self._known_and_above(request)
        allow, namespace, cells = options.allow, self._namespace(), self._cells()
        found = ide.check(request["source"], language, options.strict, allow, known, namespace, cells, above, used)
        return {"analysis": found}

    def _at(self, key: str, ask: Callable[..., Json | None]) -> Callable[[Json, str, str], Json]:
        """Requests about a position."""

        def answer(request: Json, language: str, magic: str) -> Json:
            del magic
            known, _, used = self._known_and_above(request)
            return {key: ask(request["source"], _position(request), language, known, used)}

        return answer

    def _definition(self, request: Json, language: str, magic: str) -> Json:
        del magic
        known, _, used = self._known_and_above(request)
        found = ide.definition(request["source"], _position(request), language, known, used)
        if found is not None and "file" in found:
            found["file"] = shown_path(Path(found["file"]))
        elif found is not None and found["span"] is None:
            found |= _in_earlier(str(found["name"]), _earlier(request))
        return {"definition": found}

    def _references(self, request: Json, language: str, magic: str) -> Json:
        del magic
        return {"references": ide.references(request["source"], _position(request), language, self._known(request))}

    def _rename(self, request: Json, language: str, magic: str) -> Json:
        del magic
        name = request.get("name")
        if name is not None and not isinstance(name, str):
            raise Refused("bad-request", "`name` is not a string")
        known = self._known(request)
        return {"rename": ide.rename(request["source"], _position(request), name, language, known)}

    def _format(self, request: Json, language: str, magic: str) -> Json:
        del magic
        return {"format": ide.format_text(request["source"], language)}

    def _inspect(self, request: Json, language: str, magic: str) -> Json:
        del magic
        what = cast("str", _field(request, "what", str))
        if what == "cells":
            cells = [self._cell(cell) for cell in _field(request, "cells", list)]
            return {
                "inspect": {**ide.inspect("cells", cells=cells, functions=self._functions()), "package": __version__}
            }
        extra: Json = {"known": self._known(request), "functions": self._functions(), "sizes": _numbers(request)}
        if what in ("code", "schedule"):
            extra["name"] = _field(request, "name", str)
        if what == "code":
            extra["form"] = _field(request, "form", str)
        if what == "schedule":
            extra["schedule"] = _steps(request)
        return {"inspect": ide.inspect(what, request["source"], language, **extra)}

    def _cell(self, cell: Any) -> Json:
        """One cell of a notebook for the inspector: its options as arguments."""
        if not isinstance(cell, dict):
            raise Refused("bad-request", "`cells` is not an array of objects")
        given = cast("Json", cell)
        magic = cast("str", _field(given, "magic", str))
        options = self._defaults(read_options(magic))
        return {
            "cell": _field(given, "cell", str),
            "version": _field(given, "version", int),
            "source": _source(given),
            "language": language_of(magic),
            "strict": options.strict,
            "allow": options.allow,
            "target": options.target,
            "known": self._functions(),
        }

    def _keywords(self, request: Json, language: str, magic: str) -> Json:
        del magic
        client = _field(request, "client", dict, {})
        application = str(client.get("application") or "")[:80]
        if application:
            self.clients[application] = str(client.get("package") or "?")[:40]
        return {"keywords": {"package": __version__, **ide.keywords(language), "options": magic_options(language)}}


_REPORT = "this is a fault of tc_jupyter: run the cell to see whether it works, and please report the text"
_UPDATE = "install the same version of tc_jupyter where the kernel runs and where JupyterLab runs"


def _look(source: str, magic: str) -> ide.Files:
    """The files of a cell, as far as they may be read before it is run: below the kernel's folder."""
    return ide.look(source, language_of(magic), Path.cwd())


def _in_earlier(name: str, cells: list[Json]) -> Json:
    """Cell and place of a def in the cells above, the last one first; nothing where none defines it."""
    for cell in reversed(cells):
        place = ide.find_def(cell["source"], name, language_of(cell["magic"]))
        if place is not None:
            return {"cell": cell.get("cell"), "span": place}
    return {}


def magic_options(language: str) -> list[Json]:
    """The options of the cell magic: name, name of the value or `None`, one line."""
    rows: list[Json] = []
    for action in parser(f"%%{language}")._actions:  # pyright: ignore[reportPrivateUsage]  (argparse has no other way)
        names = [word for word in action.option_strings if word.startswith("--")]
        value = None if action.nargs == 0 else (action.metavar or "|".join(map(str, action.choices or ())) or "VALUE")
        rows += [{"name": name, "parameter": value, "documentation": action.help or ""} for name in names]
    return rows


# the channel of this process -----------------------------------------------------------------------------------------------------

_channels: list[Channel] = []  # the open one, if any; a kernel has one shell


def open_channel(shell: Any) -> None:
    """Open the channel, if the shell belongs to a kernel; one that is open already is closed."""
    close_channel()
    if getattr(shell, "kernel", None) is None:
        return
    channel = Channel(shell)
    channel.open()
    _channels.append(channel)


def close_channel() -> None:
    """Close the channel, if it is open."""
    while _channels:
        _channels.pop().close()


def attached() -> bool:
    """Whether a page listens."""
    return bool(_channels and _channels[-1].clients)


def front_end() -> str:
    """Which front end is attached, in words: `JupyterLab 4.6.6 (tc_jupyter 0.1.0)`."""
    if not _channels:
        return "none: this shell has no kernel"
    clients = _channels[-1].clients
    if not clients:
        return "none attached: highlighting and messages while typing need the JupyterLab extension of tc_jupyter"
    named = ", ".join(f"{application} (tc_jupyter {version})" for application, version in clients.items())
    others = sorted({version for version in clients.values() if version != __version__})
    return named + (f"; the kernel has {__version__}: update both to the same version" if others else "")
