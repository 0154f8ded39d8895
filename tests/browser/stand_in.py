"""A kernel side of a few lines, so that the front end can be tested alone: it speaks PROTOCOL.md about a made-up language.

Every name `Q` is an unknown name (TC201, fix: `X`), every name `W` is a warning, every `def` is known, indices run from 0 to N. The
answer to the first check of a text with the word `lost` is never sent.
"""

from __future__ import annotations

import re
from typing import Any

VERSION = 1
PACKAGE = "0.1.0"
_state: dict[str, Any] = {"comm": None, "lost": False}


def _position(text: str, offset: int) -> dict[str, int]:
    line = text.count("\n", 0, offset)
    return {"line": line, "character": offset - (text.rfind("\n", 0, offset) + 1)}


def _span(text: str, start: int, end: int) -> dict[str, Any]:
    return {"start": _position(text, start), "end": _position(text, end)}


def _offset(text: str, position: dict[str, int]) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position["line"]]) + position["character"]


def _word(text: str, position: dict[str, int]) -> re.Match[str] | None:
    at = _offset(text, position)
    return next((m for m in re.finditer(r"\w+", text) if m.start() <= at <= m.end()), None)


def _function(text: str, name: str) -> dict[str, Any]:
    index = {"name": "i", "kind": "output", "lower": "0", "upper": "N - 1", "round": 1, "source": "inferred"}
    reduction = {"name": "k", "kind": "reduction", "lower": "0", "upper": "K", "round": 2, "source": "inferred"}
    indices = [{**index, "because": ["0 <= i + 1 < N  (X)"]}, {**reduction, "because": []}]
    start = text.find(f"def {name}")
    line = next((i for i, t in enumerate(text.split("\n")) if "Y(i" in t), 0)
    return {
        "name": name,
        "sizes": ["N", "K"],
        "inputs": [{"name": "X", "dtype": "float32", "dims": ["N"]}],
        "outputs": [{"name": "Y", "dtype": "float32", "shape": ["N - 1"], "origin": ["0"]}],
        "temporaries": [],
        "statements": [{"line": line, "target": "Y", "operator": "=", "indices": indices}],
        "preconditions": [
            {
                "text": "K <= N",
                "status": "checked_at_call",
                "kind": "SIZE",
                "subject": "access",
                "span": _span(text, start, start + 3),
            }
        ],
    }


def _diagnostics(text: str) -> list[dict[str, Any]]:
    found = []
    for m in re.finditer(r"\b[QW]\b", text):
        span = _span(text, m.start(), m.end())
        error = m.group() == "Q"
        fix = {"title": "replace `Q` by `X`", "edits": [{"span": span, "text": "X"}]} if error else None
        found.append({
            "code": "TC201" if error else "TC233", "name": "unknown-name" if error else "likely-typo",
            "severity": "error" if error else "warning", "message": f"`{m.group()}` is not known here",
            "help": "did you mean `X`?", "span": span, "labels": [], "fix": fix,
        })  # fmt: skip
    return found


def _defs(text: str) -> list[str]:
    return re.findall(r"\bdef\s+(\w+)", text)


def check(r: dict[str, Any]) -> dict[str, Any]:
    text = r["source"]
    functions = [_function(text, name) for name in _defs(text)]
    return {"analysis": {"schema": "tc-jupyter/analysis/1", "functions": functions, "diagnostics": _diagnostics(text)}}


def hover(r: dict[str, Any]) -> dict[str, Any]:
    m = _word(r["source"], r["position"])
    if m is None:
        return {"hover": None}
    kind = "index" if len(m.group()) == 1 and m.group().islower() else "tensor"
    title = f"0 <= {m.group()} < N - 1" if kind == "index" else f"float32 {m.group()}(N)"
    span = _span(r["source"], m.start(), m.end())
    return {
        "hover": {"span": span, "kind": kind, "title": title, "lines": ["because `told so`"], "documentation": None}
    }


def complete(r: dict[str, Any]) -> dict[str, Any]:
    text, at = r["source"], _offset(r["source"], r["position"])
    start = at - len(re.search(r"\w*$", text[:at]).group())  # type: ignore[union-attr]
    items = [
        {"label": "XLong", "type": "tensor", "detail": "float32(N)"},
        {"label": "exp", "type": "function", "detail": "exp(x)", "documentation": "e to the power x"},
    ]
    return {"completions": {"span": _span(text, start, at), "items": items}}


def signature(r: dict[str, Any]) -> dict[str, Any]:
    text, at = r["source"], _offset(r["source"], r["position"])
    m = re.search(r"(\w+)\(([^()]*)$", text[:at])
    if m is None:
        return {"signature": None}
    span = _span(text, m.start(), at)
    return {
        "signature": {
            "label": "pow(x, y)",
            "parameters": [[4, 5], [7, 8]],
            "active": m.group(2).count(","),
            "span": span,
        }
    }


def definition(r: dict[str, Any]) -> dict[str, Any]:
    m = _word(r["source"], r["position"])
    if m is None:
        return {"definition": None}
    start = r["source"].find(f"def {m.group()}")
    span = _span(r["source"], start + 4, start + 4 + len(m.group())) if start >= 0 else None
    return {"definition": {"name": m.group(), "kind": "def", "cell": None, "span": span}}


def references(r: dict[str, Any]) -> dict[str, Any]:
    word = _word(r["source"], r["position"])
    places = re.finditer(rf"\b{word.group()}\b", r["source"]) if word else ()
    return {"references": [{"span": _span(r["source"], *m.span()), "introduces": False} for m in places]}


def rename(r: dict[str, Any]) -> dict[str, Any]:
    m = _word(r["source"], r["position"])
    if m is None:
        return {"rename": None}
    word, new = m.group(), r.get("name")
    base = {"span": _span(r["source"], m.start(), m.end()), "name": word, "kind": "index", "refused": None}
    if new is not None and not new.isidentifier():
        return {"rename": {**base, "edits": [], "refused": f"`{new}` is not a name"}}
    uses = re.finditer(rf"\b{word}\b", r["source"]) if new else []
    return {"rename": {**base, "edits": [{"span": _span(r["source"], u.start(), u.end()), "text": new} for u in uses]}}


def format(r: dict[str, Any]) -> dict[str, Any]:
    return {"format": {"text": re.sub(r"[ \t]+=[ \t]+", " = ", r["source"]), "refused": None}}


def inspect(r: dict[str, Any]) -> dict[str, Any]:
    if r["what"] == "code":
        text = "// generated\nfor (int i = 0; i < N - 1; i++)\n  Y[i] = X[i + 1];"
        return {
            "inspect": {
                "what": "code",
                "name": r["name"],
                "form": r["form"],
                "forms": ["loops", "cuda"],
                "text": text,
                "lines": [None, 1, 1],
            }
        }
    if r["what"] == "schedule":
        loop = {"name": "i.outer", "min": "0", "extent": "4", "annotation": None}
        stages = [{"stage": "Y", "attached": None, "visits": 1, "loops": [loop]}]
        return {
            "inspect": {
                "what": "schedule",
                "name": r["name"],
                "sizes": r.get("sizes"),
                "primitives": [],
                "loops": "for i in 0:N - 1",
                "stages": stages,
            }
        }
    cells = []
    for cell in r["cells"]:
        bad = bool(_diagnostics(cell["source"]))
        defs = [
            {"name": n, "span": _span(cell["source"], cell["source"].find(f"def {n}") + 4, cell["source"].find(f"def {n}") + 4 + len(n)),
             "state": "failing" if bad else "analysed", "target": None, "errors": int(bad), "warnings": 0,
             "signature": f"{n}(float(N) X) -> (Y)", "shapes": ["Y (N - 1)"], "calls": []}
            for n in _defs(cell["source"])
        ]  # fmt: skip
        cells.append({"cell": cell["cell"], "version": cell["version"], "defs": defs})
    engine = {"target": "cpu", "device": "stand-in", "note": None}
    return {"inspect": {"what": "cells", "package": PACKAGE, "engine": engine, "cells": cells, "others": []}}


def keywords(r: dict[str, Any]) -> dict[str, Any]:
    functions = [{"name": "exp", "parameters": ["x"], "documentation": "e to the power x"}]
    return {"keywords": {"package": PACKAGE, "language": "tc", "keywords": [], "types": [], "functions": functions}}


KINDS = {
    f.__name__: f
    for f in (check, hover, complete, signature, definition, references, rename, format, inspect, keywords)
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    echo = {key: request.get(key) for key in ("id", "cell", "version")}
    if "junk" in request.get("source", ""):
        return {
            "v": VERSION,
            "kind": request["kind"],
            **echo,
            "analysis": {"functions": 3, "diagnostics": "many"},
        }
    if "flood" in request.get("source", "") and request["kind"] == "check":
        one = {"code": "TC201", "name": "x", "severity": "error", "message": "m", "span": _span("a", 0, 1)}
        return {"v": VERSION, "kind": "check", **echo, "analysis": {"functions": [], "diagnostics": [one] * 5000}}
    return {"v": VERSION, "kind": request["kind"], **echo, **KINDS[request["kind"]](request)}


def load_ipython_extension(shell: Any) -> None:
    from comm import create_comm

    comm = create_comm(target_name="tc_jupyter", data={"v": VERSION, "package": PACKAGE})

    def on_message(message: dict[str, Any]) -> None:
        request = message["content"]["data"]
        if request["kind"] == "check" and "lost" in request["source"] and not _state["lost"]:
            _state["lost"] = True
        else:
            comm.send(answer(request))

    comm.on_msg(on_message)
    _state["comm"] = comm

    def magic(line: str, cell: str) -> None:
        shell.user_ns["_tc_last"] = cell

    for name in ("tc", "sac"):
        shell.register_magic_function(magic, "cell", name)


def unload_ipython_extension(shell: Any) -> None:
    _state["comm"].close()
