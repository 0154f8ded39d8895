"""Random programs as text."""

from __future__ import annotations

import random

SIZES = ["N", "M", "K", "L"]


def random_program(rng: random.Random, data: bool = False) -> tuple[str, str]:
    """Signature and body of a def with one or two statements."""
    inputs, dims = [], {}
    for name in "XYZ"[: rng.randint(1, 3)]:
        rank = rng.choice([1, 1, 2, 2, 3])
        dims[name] = [rng.choice([*SIZES, *SIZES, str(rng.randint(2, 6))]) for _ in range(rank)]
        inputs.append(f"float({','.join(dims[name])}) {name}")
    if data:
        dims["P"] = [rng.choice(SIZES)]
        inputs.append(f"int({dims['P'][0]}) P")
    body = [statement(rng, "A", dims, data)]
    if rng.random() < 0.3:
        rank = body[0].split("(")[1].split(")")[0].count(",") + 1
        new = {**dims, "A": [f"A.{d}" for d in range(rank)]}
        body.append(statement(rng, "O", new, data, must="A"))
    return ", ".join(inputs), " ".join(body)


def statement(rng, target, dims, data, must=None):
    rank = rng.choice([1, 1, 2])
    out = ["i", "j"][:rank]
    names = [*out, *["k", "l"][: rng.choice([0, 1, 1, 2])]]
    factors = []
    for n in range(rng.randint(1, 4)):
        tensor = must if must and n == 0 else rng.choice([t for t in dims if t != "P"])
        index = [subscript(rng, names, dims[tensor][d], data, dims) for d in range(len(dims[tensor]))]
        text = f"{tensor}({', '.join(index)})"
        if rng.random() < 0.2:
            text = f"({guard(rng, names)} ? {text} : 0)"
        factors.append(text)
    used = set(
        " ".join(factors)
        .replace("(", " ")
        .replace(")", " ")
        .replace(",", " ")
        .replace("*", " ")
        .replace("+", " ")
        .replace("-", " ")
        .replace("/", " ")
        .replace("%", " ")
        .split()
    )
    for name in names:
        if name not in used:
            tensor = rng.choice([t for t in dims if t != "P"])
            factors.append(f"{tensor}({', '.join(name if d == 0 else '0' for d in range(len(dims[tensor])))})")
    where = []
    for name in names:
        if rng.random() < 0.2:
            where.append(
                f"{name} in {rng.choice(['0', '0', '1'])}:{rng.choice(['2', '3', 'N', 'M', 'N-1', 'M+1', 'min(N, M)'])}"
            )
    text = f"{target}({','.join(out)}) +=! {' * '.join(factors)}"
    return text + (f" where {', '.join(where)}" if where else "")


def subscript(rng, names, extent, data, dims):
    v, w = rng.choice(names), rng.choice(names)
    c = rng.randint(1, 3)
    forms = [
        v,
        v,
        v,
        v,
        f"{v}+{c}",
        f"{v}-{c}",
        f"{c}*{v}",
        f"2*{v}+{c}",
        f"{c}-{v}",
        f"{v}/2",
        f"({v}+{c})/3",
        f"{extent}-1-{v}",
    ]
    if v != w:
        forms += [f"{v}+{w}", f"{v}+{w}", f"2*{v}+{w}", f"{v}-{w}", f"{v}+2*{w}-1", f"({v}+{w})/2"]
    forms += [
        f"{v}%3",
        f"max({v}-1, 0)",
        f"min({v}+1, {extent}-1)",
        f"({v}+1)%{extent}",
        f"{v}*K",
        f"L*{v}+{w}" if v != w else f"L*{v}",
    ]
    if data:
        forms += [f"P({v})", f"P({v})", f"max(min(P({v}), {extent}-1), 0)", f"P({v})+{w}" if v != w else f"P({v})"]
    return rng.choice(forms)


def guard(rng, names):
    v, w = rng.choice(names), rng.choice(names)
    return rng.choice(
        [f"{v} > 0", f"{v} < N-1", f"{v} >= {w}", f"{v} >= 1 && {v} < N", f"{v} < M", f"{v}-{w} >= 0 && {v}-{w} < N"]
    )
