"""The numbers that were chosen stand in one table, with what they are for; no template and no pass for CPUs has its own."""

from __future__ import annotations

import ast
from pathlib import Path

import tc_jupyter
from tc_jupyter.schedule import tuning

PACKAGE = Path(tc_jupyter.__file__).parent
USERS = ("codegen/llvm/*.py", "schedule/templates/**/*.py", "schedule/space.py", "schedule/size_classes.py")
UNITS = (
    *(
        "Bits",
        "Blocks",
        "Bytes",
        "Columns",
        "Copies",
        "Cycles",
        "Elements",
        "Factor",
        "Iterations",
        "Lines",
        "Loads",
        "Multiply-adds",
    ),
    *(
        "Nodes",
        "Operations",
        "Parts",
        "Planes",
        "Points",
        "Products",
        "Registers",
        "Results",
        "Rows",
        "Steps",
        "Tasks",
        "Terms",
    ),
    *("Threads", "Tiles", "Times", "Vectors", "Warps"),
)


def named(path: Path) -> list[tuple[str, ast.expr, ast.stmt]]:
    """The constants of a file, each with what stands behind it."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    after = [*body[1:], ast.Pass()]
    pairs = [(stmt, behind) for stmt, behind in zip(body, after, strict=True) if isinstance(stmt, ast.Assign)]
    return [
        (t.id, stmt.value, behind)
        for stmt, behind in pairs
        for t in stmt.targets
        if isinstance(t, ast.Name) and t.id.isupper()
    ]


def is_number(value: ast.expr) -> bool:
    try:
        return isinstance(eval(compile(ast.Expression(value), "", "eval"), {}), int | float)
    except Exception:  # of other names
        return False


def test_every_number_says_its_unit_first():
    texts = {
        name: behind.value.value for name, _, behind in named(Path(tuning.__file__)) if isinstance(behind, ast.Expr)
    }
    assert set(texts) == {name for name in vars(tuning) if name.isupper()} - {"GPU_LINE_BYTES", "VECTOR_BYTES", "WARP"}
    assert [name for name, text in texts.items() if not text.startswith(UNITS)] == []


def test_nobody_else_has_numbers():
    """But the tables of polynomials, and where a comparison of 32 bits overflows."""
    found = {
        f"{path.name}: {name}"
        for pattern in USERS
        for path in PACKAGE.glob(pattern)
        if path.name != "coefficients.py"
        for name, value, _ in named(path)
        if is_number(value)
    }
    assert found == {"values.py: MOST_FACTOR", "values.py: MOST_WEIGHT", "polygamma.py: _TERMS"}
