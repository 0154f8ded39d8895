"""The JSON of an analysis, word for word: what the front end and other tools rely on."""

from __future__ import annotations

import json

import tc_jupyter as tc

CONV = "def conv(float(N) B, float(K) W) -> (A) {\n    A(i) +=! B(i + k) * W(k)\n}"
LOWER = {"line": 1, "character": 13}


def test_the_whole_of_a_convolution():
    found = tc.analyze(CONV).to_json()
    (function,) = found["functions"]
    conditions = function.pop("preconditions")
    assert found == {
        "schema": "tc-jupyter/analysis/1",
        "functions": [
            {
                "name": "conv",
                "sizes": ["N", "K"],
                "inputs": [
                    {"name": "B", "dtype": "float32", "dims": ["N"]},
                    {"name": "W", "dtype": "float32", "dims": ["K"]},
                ],
                "outputs": [{"name": "A", "dtype": "float32", "shape": ["N - K + 1"], "origin": ["0"]}],
                "temporaries": [],
                "statements": [
                    {
                        "line": 1,
                        "target": "A",
                        "operator": "+=!",
                        "indices": [
                            {
                                "name": "i", "kind": "output", "lower": "0", "upper": "N - K + 1", "round": 2,
                                "source": "inferred", "because": ["0 <= i + k < N  (B)"], "text": "0 <= i < N - K + 1",
                            },
                            {
                                "name": "k", "kind": "reduction", "lower": "0", "upper": "K", "round": 1,
                                "source": "inferred", "because": ["0 <= k < K  (W)"], "text": "0 <= k < K",
                            },
                        ],
                    }
                ],
            }
        ],
        "diagnostics": [],
    }  # fmt: skip
    assert [(item["text"], item["status"], item["kind"], item["subject"]) for item in conditions] == [
        ("0 <= i + k", "proved", "PROVED", "access"),
        ("i + k < N", "proved", "PROVED", "access"),
        ("0 <= k", "proved", "PROVED", "access"),
        ("k < K", "proved", "PROVED", "access"),
        ("K <= N + 1", "checked_at_call", "SIZE", "range"),
    ]
    assert conditions[0]["span"] == {"start": LOWER, "end": {"line": 1, "character": 21}}


def test_a_message_with_labels_and_a_fix():
    (message,) = tc.analyze("def f(float(N) X) -> (Y) { Y = X(i) }").to_json()["diagnostics"]
    assert {key: message[key] for key in ("code", "name", "severity")} == {
        "code": "TC204",
        "name": "reduction-missing",
        "severity": "error",
    }
    assert set(message) == {"code", "name", "severity", "message", "help", "span", "labels", "fix"}
    assert all(set(label) == {"span", "text"} for label in message["labels"])
    assert set(message["fix"]) == {"title", "edits"}
    assert [set(edit) for edit in message["fix"]["edits"]] == [{"span", "text"}]


def test_what_is_not_known_is_null_and_a_call_is_a_statement():
    text = "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) A) -> (T, B) {\n    T = g(A)\n    B(j) = 0\n}"
    found = tc.analyze(text).to_json()
    call, *rest = found["functions"][1]["statements"]
    assert call == {"line": 2, "operator": "call", "callee": "g", "arguments": ["A"], "targets": ["T"], "indices": []}
    (index,) = rest[-1]["indices"]
    assert (index["lower"], index["upper"], index["source"]) == (None, None, "open")
    assert json.loads(json.dumps(found)) == found


def test_functions_with_open_ranks_are_listed_with_what_they_demand():
    text = "double[*] f(double[*] a) { return { iv -> 2.0 * a[iv] }; }\nint g(int[.] s, double[*] a) { return shape(a)[0] + s[0]; }"
    found = tc.analyze(text, language="sac").to_json()
    assert found["functions"] == []
    assert list(found["open"]) == ["f", "g"]
    (f,), (g,) = found["open"]["f"], found["open"]["g"]
    assert f == {"signature": "double[*] f(double[*] a)", "demands": {"a": "value"}}
    assert g["demands"] == {"s": "value", "a": "shape"}
    assert "open" not in tc.analyze(CONV).to_json()
