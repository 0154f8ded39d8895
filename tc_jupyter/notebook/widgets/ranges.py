"""The ranges of a def: formulas, numbers at chosen sizes, why each is what it is, which conditions hold, shapes as boxes.

Choosing an index shows the rounds that led to its range and marks, in the text of the def, the accesses that bound it. With
`predict=True` ranges and output shapes are asked for before they are shown: an answer is compared at many sizes, so every way to
write it counts.

Worked example: for `conv`, choosing `i` marks `B(i + k)`, and lowering `N` below `K - 1` turns `K <= N + 1` to "fails".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice, product
from typing import Any

from tc_jupyter.compiler.text_form import function_text, proved_line
from tc_jupyter.diagnostics import Span
from tc_jupyter.function import Function, OpenRanks
from tc_jupyter.ranges import IndexRange, Precondition, explain, given_by, to_python

from .formula import mathml, range_mathml
from .lattice import TensorBox, tensor_boxes
from .picture import (
    ACCENT,
    BAD,
    GOOD,
    LINE,
    LISTING,
    MUTED,
    Content,
    Control,
    Picture,
    action,
    code,
    marked,
    one_line,
    table,
    words,
)
from .sizes import SizeNames, example_sizes, read_sizes, size_names
from .svg import letters, svg, wide
from .witness import failing, witness_svg

_TRIALS: tuple[int, ...] = (0, 1, 2, 3, 5, 8, 13)
_MOST_TRIALS = 2_000
_MOST_ROWS = 60
_OFFENDING = "background:none;color:inherit;text-decoration:underline wavy var(--jp-error-color1,#dc4440);text-underline-offset:3px"
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div,
    ast.Mod, ast.USub, ast.UAdd, ast.Call, ast.IfExp, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


SHAPE = "(shape)"
"""In place of an index: the question is the shape of an output."""


class Ranges(Picture):
    """All statements of a def; one index may be chosen."""

    name = "ranges"
    title = "ranges"

    def __init__(self, function: Function, predict: bool = False, **sizes: int) -> None:
        """`predict`: ask for each range before it is shown."""
        super().__init__(function)
        self.known: SizeNames | None = None
        self.sizes: dict[str, int] = {}
        self.chosen: tuple[str, str] | None = None
        self.predict = predict
        self.told: dict[tuple[str, str], str] = {}
        self.solved: set[tuple[str, str]] = set()
        self.guess = ""
        self.asked = 0
        try:
            self.known = size_names(function.analysis)
        except OpenRanks as problem:
            self.problem = str(problem)
            return
        self.sizes = example_sizes(self.known, sizes)

    # values ----------------------------------------------------------------------------------------------------------------------

    def apply(self, values: Mapping[str, Any], dragging: bool = False) -> None:
        """Sizes; `index`: [statement, index]; `guess`, `give_up`: answers of the learning mode."""
        del dragging
        if self.known is None:
            return
        self.sizes, self.problem = read_sizes(self.known, self.sizes, values)
        chosen = values.get("index")
        if isinstance(chosen, list) and len(chosen) == 2 and self._range(str(chosen[0]), str(chosen[1])) is not None:
            self.chosen = (str(chosen[0]), str(chosen[1]))
        if "predict" in values:
            self.predict = bool(values["predict"])
        if "guess" in values:
            self._judge(str(values["guess"])[:200])
        if values.get("give_up") and (key := self._question()) is not None:
            self.told[key] = "shown without an answer"
            self._choose(key)

    def _range(self, statement: str, name: str) -> IndexRange | None:
        assert self.known is not None
        found = self.known.found.ranges.indices.get(statement, ())
        return next((r for r in found if r.index == name and r.lower is not None and r.upper is not None), None)

    def _all(self) -> list[IndexRange]:
        assert self.known is not None
        ranges = self.known.found.ranges
        return [r for name in ranges.indices for r in ranges.written(name)]

    def _question(self) -> tuple[str, str] | None:
        """The next index whose range is still hidden."""
        if not self.predict:
            return None
        assert self.known is not None
        keys = [(r.statement, r.index) for r in self._all() if r.lower is not None and r.upper is not None]
        boxes = self.known.found.ranges.boxes
        keys += [(name, SHAPE) for name in self.known.found.program.results if name in boxes and boxes[name].shape]
        return next((key for key in keys if key not in self.told), None)

    @property
    def asking(self) -> bool:
        """Whether something is still hidden."""
        return self.known is not None and self._question() is not None

    def _choose(self, key: tuple[str, str]) -> None:
        """Show why: of a shape, the range of the first index of the statement that writes it."""
        assert self.known is not None
        if key[1] != SHAPE:
            self.chosen = key
            return
        written = [s for s in self.known.found.program.statements if s.target == key[0] and s.output_indices]
        if written and self._range(written[0].name, written[0].output_indices[0].name) is not None:
            self.chosen = (written[0].name, written[0].output_indices[0].name)

    def _judge(self, text: str) -> None:
        """Compare an answer (`lower, upper`, or the extents of a shape) with the truth at many sizes."""
        key = self._question()
        if key is None or self.known is None:
            return
        self.guess, self.asked = text, self.asked + 1
        r = self._range(*key)
        wrong = compare_shape(self.known, key[0], text) if r is None else compare_range(self.known, r, text)
        if wrong is None:
            self.told[key] = "✓ right"
            self.solved.add(key)
            self._choose(key)
            self.problem = ""
        else:
            self.problem = wrong

    # content ---------------------------------------------------------------------------------------------------------------------

    def content(self, live: bool = False) -> Content:
        """Tables of ranges and conditions, the text of the def with marks, boxes of the tensors."""
        if self.known is None:
            return Content(words(self.problem), text=self.problem)
        known = self.known
        try:
            numbers: dict[str, int] | None = known.all_numbers(self.sizes)
        except (KeyError, ValueError, ArithmeticError):
            numbers = None
        parts = [words(self.problem, "✗", BAD)] if self.problem else []
        question = self._question() if live else None
        controls = list(known.controls(self.sizes))
        if live:
            controls.append(Control("predict", "check", "predict first", self.predict))
        if question is not None:
            parts.append(self._ask_for(question))
            asked = f"shape of {question[0]}" if question[1] == SHAPE else f"range of {question[1]}"
            controls.append(Control("guess", "text", asked, self.guess))
            controls.append(Control("give_up", "button", "show it"))
        elif live and self.predict:
            parts.append(words(f"{len(self.solved)} of {len(self.told)} predicted, {self.asked} answers", "✓", GOOD))
        parts.append(self._source(numbers if question is None else None))
        parts.append(self._ranges(numbers, live))
        if self.chosen is not None:
            parts.append(self._why(self.chosen))
        if question is None:
            parts += [self._conditions(numbers), self._boxes(numbers)]
        refused = known.refusal(self.sizes)
        at = [f"  at {_at(self.sizes)}: {refused}"] if refused else []
        text = "\n".join([function_text(known.found), *at])
        return Content("".join(parts), tuple(controls), {"chosen": list(self.chosen or ())}, text=text)

    def _ask_for(self, key: tuple[str, str]) -> str:
        if key[1] == SHAPE:
            return words(f"what is the shape of `{key[0]}`? Write its extents over the sizes, with commas between them")
        return words(
            f"what is the range of `{key[1]}` in `{key[0]}`? Write its two ends, as in `0 <= {key[1]} < N` or `0, N`"
        )

    def _source(self, numbers: Mapping[str, int] | None) -> str:
        """The def with two kinds of marks: what bounds the chosen index, and accesses that fail at these sizes.

        Neither is told by colour alone: the first are bold and named in the reasons below, the second have a sign before them.
        """
        assert self.known is not None
        program = self.known.found.program
        marks = {span: False for span in (marked_spans(self.known, self.chosen) if self.chosen is not None else [])}
        if numbers is not None:
            marks |= {span: True for item in failing(self.known, numbers) if (span := item.span).end}
        pieces, at = [], program.span.start
        for span in sorted(marks, key=lambda s: (s.start, -s.end)):
            if span.start >= at and span.end <= program.span.end:
                pieces.append(escape(program.source.slice(Span(at, span.start))))
                text = escape(program.source.slice(span))
                if marks[span]:
                    pieces.append(
                        f'<mark data-offending="{span.start}:{span.end}" style="{_OFFENDING}"><b>✗{text}</b></mark>'
                    )
                else:
                    pieces.append(f'<mark data-span="{span.start}:{span.end}"><b>{text}</b></mark>')
                at = span.end
        pieces.append(escape(program.source.slice(Span(at, program.span.end))))
        style = LISTING
        return f'<pre style="{style};margin:4px 0;overflow:auto" aria-label="the def">{"".join(pieces)}</pre>'

    def _ranges(self, numbers: Mapping[str, int] | None, live: bool) -> str:
        assert self.known is not None
        known = self.known.found
        rows: list[list[str]] = []
        for r in self._all()[:_MOST_ROWS]:
            key = (r.statement, r.index)
            name = action({"index": list(key)}, r.index, live, key == self.chosen, f"{r.statement}.{r.index}")
            if live and self.predict and key not in self.told:
                rows.append([code(r.statement), code(r.index), "?", "?", r.kind, "predict it"])
                continue
            said = f"round {r.round}" if r.source == "inferred" else r.source
            if r.source == "where":
                said = given_by(known.ranges, r).replace("`", "")
            note = f"; {self.told[key]}" if key in self.told and live and self.predict else ""
            rows.append([code(r.statement), name, formula(r), at_numbers(r, numbers), r.kind, said + note])
        hidden = len(self._all()) - len(rows)
        more = f"<div>and {hidden} more</div>" if hidden > 0 else ""
        head = ["statement", "index", "range", "at these sizes", "kind", "from"]
        return table(head, rows, "ranges of all indices") + more

    def _why(self, key: tuple[str, str]) -> str:
        assert self.known is not None
        steps = explain(self.known.found.ranges, *key)
        items = "".join(f"<li>{marked(step.text)}</li>" for step in steps.steps)
        reasons, _, result = steps.summary.partition("  ->  ")
        last = (
            "" if result.startswith(f"{reasons} (") else f"<div>{code(steps.summary)}</div>"
        )  # it would say one thing twice
        return f'<div data-why="{escape(key[1])}"><b>why {code(key[1])}</b><ol style="margin:2px 0">{items}</ol>{last}</div>'

    def _conditions(self, numbers: Mapping[str, int] | None) -> str:
        assert self.known is not None
        items = self.known.found.preconditions
        if not items:
            return words("no condition: every access stays inside for all sizes", "✓", GOOD)
        source = self.known.found.program.source
        rows = list(
            dict.fromkeys(
                (
                    code(item.text),
                    escape(item.status.replace("_", " ")),
                    holds(item, numbers),
                    code(_place(item, source)),
                )
                for item in items
                if item.status != "proved"
            )
        )[:_MOST_ROWS]
        said = f"<div>{escape(proved_line(items))}</div>"
        refused = self.known.problem(self.sizes)
        if refused is not None:
            said += words(self.known.refusal(self.sizes), "✗", BAD)
            said += f"<div>{marked(refused.help)}</div>" if refused.help else ""
            said += witness_svg(self.known, numbers) if numbers is not None else ""
        head = ["condition", "status", "at these sizes", "for"]
        return said + (table(head, rows, "conditions that are not proved") if rows else "")

    def _boxes(self, numbers: Mapping[str, int] | None) -> str:
        if numbers is None or self.known is None:
            return ""
        try:
            boxes = tensor_boxes(self.known.found, numbers)
        except (KeyError, ValueError, ArithmeticError) as problem:
            return words(f"no boxes at these sizes: {one_line(problem)}")
        shown = [box for box in boxes.values() if box.shape][:12]
        found = self.known.found.ranges.boxes
        rows = [
            [
                escape(box.kind),
                code(box.name),
                " × ".join(mathml(to_python(e)) for e in found[box.name].shape),
                _tuple(box.shape),
                _tuple(box.origin),
            ]
            for box in shown
        ]
        head = ["", "tensor", "shape", "at these sizes", "first element"]
        return boxes_svg(shown) + table(head, rows, "shapes and origins")


def _place(item: Precondition, source: Any) -> str:
    if item.range is not None:
        return f"range of {item.range.index}"
    return " ".join(source.slice(item.span).split()) if item.span.end else item.subject


def formula(r: IndexRange) -> str:
    """The range, typeset."""
    if r.lower is None or r.upper is None:
        return "not known"
    lower, upper = r.ends or (r.lower, r.upper)
    return range_mathml(to_python(lower), r.index, to_python(upper))


def at_numbers(r: IndexRange, numbers: Mapping[str, int] | None) -> str:
    """`0 .. 5 (6)`, or that it is empty."""
    if numbers is None or r.lower is None or r.upper is None:
        return "-"
    try:
        low, high = r.lower.evaluate(numbers), r.upper.evaluate(numbers)
    except (KeyError, ValueError, ArithmeticError):
        return "-"
    return f"{low} .. {high - 1} ({high - low})" if high > low else "∅ empty"


def holds(item: Precondition, numbers: Mapping[str, int] | None) -> str:
    """`✓ holds` or `✗ fails` at these sizes, where sizes decide."""
    if item.kind != "SIZE" or numbers is None:
        return {"refuted": "✗ fails for all sizes"}.get(item.status, "only a call knows")
    try:
        fine = all(c.evaluate(numbers) >= 0 for c in item.conditions)
    except (KeyError, ValueError, ArithmeticError):
        return "only a call knows"
    sign, word, colour = ("✓", "holds", GOOD) if fine else ("✗", "fails", BAD)
    return f'<span data-holds="{str(fine).lower()}"><span style="color:{colour}">{sign}</span> {word}</span>'


def marked_spans(known: SizeNames, key: tuple[str, str]) -> list[Span]:
    """The places that decide the range of an index, in text order and without overlap."""
    steps = explain(known.found.ranges, *key).steps
    spans = sorted({span for step in steps for span in step.spans if span.end}, key=lambda s: (s.start, -s.end))
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))})"


def last_of(box: TensorBox) -> str:
    """` … (3, 4)`, the last element, or that there is none."""
    if not all(box.shape):
        return " none: empty"
    return f" … {_tuple([o + e - 1 for o, e in zip(box.origin, box.shape, strict=True)])}"


def boxes_svg(boxes: list[TensorBox]) -> str:
    """Boxes of tensors (of their last two dimensions) on common coordinates: inputs dashed, computed ones solid."""
    drawn = boxes
    if not drawn:
        return ""
    ends = [
        (box, (*[0] * (2 - len(box.shape)), *box.origin[-2:]), (*[1] * (2 - len(box.shape)), *box.shape[-2:]))
        for box in drawn
    ]
    left = min(origin[1] for _, origin, _ in ends)
    right = max(origin[1] + shape[1] for _, origin, shape in ends)
    scale = min(18.0, 420 / max(right - left, 1))
    parts: list[str] = []
    start = max(70.0, 8 + max(wide(box.name) for box in drawn))
    y, widest = 4.0, start + (right - left) * scale
    for box, origin, shape in ends:
        height = min(max(shape[0] * scale, 8), 110)
        x = start + (origin[1] - left) * scale
        width = max(shape[1] * scale, 1)
        said = f"{_tuple(box.origin)}{last_of(box)}"
        widest = max(widest, x + 3 + wide(said))
        dash = ' stroke-dasharray="4 3"' if box.kind == "input" else ""
        parts.append(
            f"{letters(2, y + 11, box.name)}"
            f'<rect data-box="{escape(box.name)}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{ACCENT}" fill-opacity=".13" stroke="currentColor"{dash}/>'
            f"{letters(x + 3, y + height + 12, said)}"
        )
        y += height + 20
    label = "; ".join(f"{box.name} starts at {tuple(box.origin)} with shape {tuple(box.shape)}" for box in drawn)
    width = widest + 12
    more = "; of more than two dimensions the last two" if any(len(box.shape) > 2 for box in drawn) else ""
    zero = f'<path d="M{start - left * scale:.1f} 0V{y:.1f}" stroke="{LINE}"/>'
    return (
        f"{svg(width, y, zero + ''.join(parts), label, style='margin:4px 0')}"
        f'<div style="{MUTED}">dashed: inputs; solid: computed; the vertical line is index 0{more}</div>'
    )


# predictions ---------------------------------------------------------------------------------------------------------------------


def compare_shape(known: SizeNames, name: str, text: str) -> str | None:
    """`None` if the extents equal the shape of an output wherever the sizes are allowed; else what is wrong."""
    shape, said = known.found.ranges.boxes[name].shape, _split(text.strip().removeprefix("(").removesuffix(")"))
    if len(said) != len(shape):
        return f"`{name}` has {len(shape)} dimensions, and {len(said)} extents came"
    for sizes in _trials(known):
        numbers = known.all_numbers(sizes)
        true = tuple(max(0, extent.evaluate(numbers)) for extent in shape)
        try:
            answer = tuple(evaluated(extent, numbers) for extent in said)
        except ValueError as problem:
            return str(problem)
        if tuple(max(0, extent) for extent in answer) != true:
            return f"not for {_at(sizes)}: you say {answer}, it is {true}"
    return None


def _trials(known: SizeNames) -> Iterator[dict[str, int]]:
    """Small sizes that a call would take."""
    for values in islice(product(_TRIALS, repeat=len(known.names)), _MOST_TRIALS):
        sizes = dict(zip(known.names, values, strict=True))
        if known.problem(sizes) is None:
            yield sizes


def _at(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def compare_range(known: SizeNames, r: IndexRange, text: str) -> str | None:
    """`None` if `lower, upper` equals the range wherever it is not empty and the sizes are allowed; else what is wrong."""
    assert r.lower is not None
    assert r.upper is not None
    ends = _ends(text, r.index)
    if ends is None:
        return f"write the two ends, as in `0 <= {r.index} < N`, `[0, N)` or `0, N`; the second one is not included"
    tested = 0
    for sizes in _trials(known):
        numbers = known.all_numbers(sizes)
        low, high = r.lower.evaluate(numbers), r.upper.evaluate(numbers)
        try:
            said = tuple(evaluated(end, numbers) for end in ends)
        except ValueError as problem:
            return str(problem)
        tested += 1
        if (low < high or said[0] < said[1]) and said != (low, high):
            return f"not for {_at(sizes)}: you say {said[0]} to {said[1] - 1}, it is {low} to {high - 1}"
    return None if tested else "no small sizes are allowed here, so the answer cannot be compared"


def _ends(text: str, name: str) -> tuple[str, str] | None:
    """The two ends of a range in any of the ways in which it is written: the second one is not included.

    Worked example: `0 <= i < N`, `0 <= i <= N - 1`, `[0, N)`, `[0, N[`, `[0, N - 1]`, `0:N` and `0, N` are all `("0", "N")`.
    """
    index = re.escape(name)
    chain = re.fullmatch(rf"(.+?)(<=|≤|<){index}(<=|≤|<)(.+)", text.replace(" ", ""))
    if chain is not None:
        low, first, last, high = chain.groups()
        return low if first != "<" else f"({low})+1", high if last == "<" else f"({high})+1"
    interval = re.fullmatch(r"\[(.+)([)\]\[])", text.strip())
    parts = _split(interval.group(1) if interval is not None else text)
    if len(parts) == 1:
        parts = parts[0].split(":")
    if len(parts) != 2:
        return None
    return parts[0], f"({parts[1]})+1" if interval is not None and interval.group(2) == "]" else parts[1]


def _split(text: str) -> list[str]:
    """Cut at commas outside parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def evaluated(text: str, numbers: Mapping[str, int]) -> int:
    """An integer expression over sizes, with `min` and `max`; `/` rounds down.

    Raises:
        ValueError: anything else; says what.
    """
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"`{text[:60]}` is not an expression") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"`{text[:60]}`: only sizes, numbers, `+ - * / // %`, `min` and `max`")
        if isinstance(node, ast.Constant) and (type(node.value) is not int or abs(node.value) > 10**9):
            raise ValueError(f"`{text[:60]}`: only whole numbers")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in ("min", "max")):
            raise ValueError(f"`{text[:60]}`: only `min` and `max` can be called")
        if isinstance(node, ast.Name) and node.id not in numbers and node.id not in ("min", "max"):
            raise ValueError(f"there is no size `{node.id}`; there are {', '.join(n for n in numbers if '.' not in n)}")
    whole = ast.fix_missing_locations(_Floor().visit(tree))
    try:
        return int(
            eval(compile(whole, "<answer>", "eval"), {"__builtins__": {}, "min": min, "max": max}, dict(numbers))
        )
    except (ArithmeticError, TypeError, ValueError) as problem:
        raise ValueError(f"`{text[:60]}`: {problem}") from None


class _Floor(ast.NodeTransformer):
    """`a / b` means `a // b`, as in the language."""

    def visit_Div(self, node: ast.Div) -> ast.FloorDiv:
        del node
        return ast.FloorDiv()
