"""Tree -> program: what the statements mean, what every mistake is called, and that nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tc_jupyter.diagnostics import SourceText, render
from tc_jupyter.program import (
    COMPARISONS,
    FUNCTIONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Checked,
    Const,
    DType,
    Expr,
    IndexVar,
    Program,
    Read,
    Select,
    Size,
    Statement,
    Unary,
    check_tc,
    python_name,
    walk,
)
from tc_jupyter.syntax import parse_tc
from tests.strategies import drawn

BOOL, INT32, INT64, FLOAT32 = DType.BOOL, DType.INT32, DType.INT64, DType.FLOAT32
i, j, k = (IndexVar(name) for name in "ijk")
N = Size("N")


def check(text: str, known: dict[str, Program] | None = None) -> Checked:
    source = SourceText(text)
    parsed = parse_tc(source)
    assert not parsed.diagnostics, render(parsed.diagnostics, source)
    return check_tc(parsed.unit, source, known)


def program(text: str, known: dict[str, Program] | None = None) -> Program:
    checked = check(text, known)
    assert not checked.broken, render(checked.diagnostics, SourceText(text))
    return list(checked.programs.values())[-1]


def found(text: str) -> list[str]:
    return [item.code.number for item in check(text).diagnostics]


def only(body: str, signature: str = "float(N) X") -> Statement:
    """The single statement of a def."""
    (statement,) = program(f"def f({signature}) -> (Y) {{ {body} }}").statements
    return statement


def x(*indices: Expr) -> Read:
    return Read("X", indices, FLOAT32)


# programs


def test_a_matrix_vector_product():
    mv = program("def mv(float(R,C) A, float(C) B) -> (o) { o(i) +=! A(i,j) * B(j) }")
    assert (mv.name, mv.language, mv.sizes, mv.parameters, mv.results) == ("mv", "tc", ("R", "C"), ("A", "B"), ("o",))
    assert mv.tensor("A").dims == (Size("R"), Size("C"))
    assert (mv.tensor("o").kind, mv.tensor("o").dtype, mv.tensor("o").rank, mv.tensor("o").dims) == (
        "output",
        FLOAT32,
        1,
        None,
    )
    (statement,) = mv.statements
    assert [(index.name, index.kind, index.where) for index in statement.indices] == [
        ("i", "output", None),
        ("j", "reduction", None),
    ]
    assert (statement.name, statement.target, statement.operator) == ("o", "o", "+")
    assert (statement.initialize, statement.accumulate) == (True, False)
    assert statement.value == Binary("*", Read("A", (i, j), FLOAT32), Read("B", (j,), FLOAT32), FLOAT32)
    assert statement.text == "o(i) +=! A(i,j) * B(j)"


@pytest.mark.parametrize(
    ("body", "flags"),
    [
        ("Y(i) = X(i)", [("=", False, False)]),
        ("Y(i) +=! X(i)", [("+", True, False)]),
        ("Y(i) += X(i)", [("+", True, True)]),
        ("Y(i) = X(i) Y(i) max= X(i)", [("=", False, False), ("max", False, True)]),
        ("Y(i) = X(i) Y(i) min=! X(i)", [("=", False, False), ("min", True, False)]),
        ("T(i) *= X(i) Y(i) = T(i)", [("*", True, False), ("=", False, False)]),
    ],
)
def test_where_a_reduction_starts(body, flags):
    found = program(f"def f(float(N) X) -> (Y) {{ {body} }}").statements
    assert [(item.operator, item.initialize, item.accumulate) for item in found] == flags


def test_names_of_later_statements():
    statements = program("def f(float(N) X) -> (Y) { Y(i) = X(i) Y(i) += 1 T(i) = X(i) Y(i) += T(i) }").statements
    assert [item.name for item in statements] == ["Y", "Y#2", "T", "Y#3"]


def test_reduction_indices_come_in_order_of_first_occurrence():
    statement = only("Y(i) +=! v * X(k) * X(i) where v = X(b) + X(a), exists X(z)")
    assert [index.name for index in statement.indices] == ["i", "b", "a", "k", "z"]
    assert statement.exists == (x(IndexVar("z")),)


def test_an_index_of_an_unused_let_is_no_index():
    assert [index.name for index in only("Y(i) = X(i) where v = X(k)").indices] == ["i"]


def test_lets_are_put_in():
    assert only("Y(i) = w * v where v = X(i), w = v + 1").value == Binary(
        "*", Binary("+", x(i), Const(1.0, FLOAT32), FLOAT32), x(i), FLOAT32
    )


def test_where_bounds_are_64_bit_integers():
    statement = only("Y(i) = X(i) where i in s / 2:min(N, X.0) - m, m = 1", "float(N) X, int16 s")
    scalar = Cast(Read("s", (), DType.INT16), INT64)
    lower = Binary("//", scalar, Const(2, INT64), INT64)
    assert statement.indices[0].where == (lower, Binary("-", Binary("min", N, N, INT64), Const(1, INT64), INT64))


def test_extents_of_inputs_and_of_computed_tensors():
    values = [
        item.value
        for item in program("def f(float(N,3) X) -> (Y) { T(i) = X(i,0) + X.1 Y(i) = T.0 where i in 0:X.0 }").statements
    ]
    assert values[0] == Binary("+", x(i, Const(0, INT64)), Const(3.0, FLOAT32), FLOAT32)
    assert values[1] == Size("T.0")


def test_a_result_size_is_the_extent_of_its_tensor():
    found = program(
        "def f(float(N) X) -> (float(P) Y, float(P) Z, float(N) U) { Y(i) = X(i) Z(i) = float(P) where i in 0:P U(i) = X(i) }"
    )
    assert found.sizes == ("N",)
    assert found.tensor("Y").declared == (Size("P"),)
    assert found.statement("Z").value == Cast(Size("Y.0"), FLOAT32)
    pairs = [(item.left, item.right, item.kind) for item in found.equalities]
    assert pairs == [(Size("Z.0"), Size("Y.0"), "declared"), (Size("U.0"), N, "declared")]


# types of expressions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n(i) / 2", Binary("//", Read("n", (i,), INT32), Const(2, INT32), INT32)),
        ("n(i) / 2.0", Binary("/", Cast(Read("n", (i,), INT32), FLOAT32), Const(2.0, FLOAT32), FLOAT32)),
        ("h(i)", Cast(Read("h", (i,), DType.FLOAT16), FLOAT32)),
        ("half(X(i))", Cast(Cast(x(i), DType.FLOAT16), FLOAT32)),
        ("float(h(i))", Cast(Read("h", (i,), DType.FLOAT16), FLOAT32)),
        ("b(i) + b(i)", Binary("+", Cast(Read("b", (i,), BOOL), INT32), Cast(Read("b", (i,), BOOL), INT32), INT32)),
        ("min(b(i), b(i))", Binary("min", Read("b", (i,), BOOL), Read("b", (i,), BOOL), BOOL)),
        (
            "max(X(i), 0, 1)",
            Binary("max", Binary("max", x(i), Const(0.0, FLOAT32), FLOAT32), Const(1.0, FLOAT32), FLOAT32),
        ),
        ("exp(n(i))", Call("exp", (Cast(Read("n", (i,), INT32), FLOAT32),), FLOAT32)),
        ("isnan(X(i))", Call("isnan", (x(i),), BOOL)),
        ("floor(n(i))", Read("n", (i,), INT32)),
        ("abs(-3) + n(i)", Binary("+", Const(3, INT32), Read("n", (i,), INT32), INT32)),
        ("7/2 * -1 % 2 + n(i)", Binary("+", Const(1, INT32), Read("n", (i,), INT32), INT32)),
        ("-7/2 + n(i)", Binary("+", Const(-4, INT32), Read("n", (i,), INT32), INT32)),
        ("b(i) ? X(i) : 1", Select(Read("b", (i,), BOOL), x(i), Const(1.0, FLOAT32), FLOAT32)),
        ("n(i) < 2.5", Binary("<", Cast(Read("n", (i,), INT32), FLOAT32), Const(2.5, FLOAT32), BOOL)),
        ("-b(i)", Unary("-", Cast(Read("b", (i,), BOOL), INT32), INT32)),
        ("d(i) * 0.1", Binary("*", Read("d", (i,), DType.FLOAT64), Const(0.1, DType.FLOAT64), DType.FLOAT64)),
        (
            "d(i) * sqrt(2.0)",
            Binary(
                "*",
                Read("d", (i,), DType.FLOAT64),
                Call("sqrt", (Const(2.0, DType.FLOAT64),), DType.FLOAT64),
                DType.FLOAT64,
            ),
        ),
        ("double(0.1)", Const(0.1, DType.FLOAT64)),
        ("i + n(i)", Binary("+", i, Cast(Read("n", (i,), INT32), INT64), INT64)),
    ],
)
def test_types_of_expressions(text, value):
    signature = "float(N) X, int(N) n, half(N) h, bool(N) b, double(N) d"
    assert only(f"Y(i) = {text} where i in 0:N", signature).value == value


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("n(i) + 1", Binary("+", Cast(Read("n", (i,), INT32), INT64), Const(1, INT64), INT64)),
        (
            "n(i) * n(i) + i",
            Binary(
                "+",
                Binary("*", Cast(Read("n", (i,), INT32), INT64), Cast(Read("n", (i,), INT32), INT64), INT64),
                i,
                INT64,
            ),
        ),
        ("u(i) - 1", Binary("-", Cast(Read("u", (i,), DType.UINT8), INT64), Const(1, INT64), INT64)),
        ("int8(n(i))", Cast(Cast(Read("n", (i,), INT32), DType.INT8), INT64)),
        ("int64(n(i))", Cast(Read("n", (i,), INT32), INT64)),
        ("c(i)", Cast(Read("c", (i,), FLOAT32), INT64)),
        ("c(i) + 1", Cast(Binary("+", Read("c", (i,), FLOAT32), Const(1.0, FLOAT32), FLOAT32), INT64)),
        (
            "max(min(c(i), N - 1), 0)",
            Binary(
                "max",
                Binary("min", Cast(Read("c", (i,), FLOAT32), INT64), Binary("-", N, Const(1, INT64), INT64), INT64),
                Const(0, INT64),
                INT64,
            ),
        ),
        (
            "max(min(h(i), N), 0.5)",
            Binary("max", Binary("min", Cast(Read("h", (i,), DType.FLOAT16), INT64), N, INT64), Const(0, INT64), INT64),
        ),
    ],
)
def test_index_arithmetic_is_exact(index, expected):
    statement = only(f"Y(i) = X({index})", "float(N) X, int(N) n, uint8(N) u, float(N) c, half(N) h")
    (read,) = [item for item in walk(statement.value) if isinstance(item, Read) and item.tensor == "X"]
    assert read.indices == (expected,)


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("Y(i) = h(i) * 2", "float16"),
        ("Y(i) = h(i) + X(i)", "float32"),
        ("Y +=! b(i)", "int32"),
        ("Y max=! b(i)", "bool"),
        ("Y(i) = 3 where i in 0:N", "int32"),
    ],
)
def test_element_types_of_targets(body, dtype):
    found = program(f"def f(float(N) X, half(N) h, bool(N) b) -> (Y) {{ {body} }}")
    assert found.tensor("Y").dtype is DType(dtype)
    assert found.statements[0].value.dtype is DType(dtype).compute


def test_a_value_is_converted_to_the_declared_type():
    statement = only("Z(i) = X(i)  Y(i) = Z(i)".replace("Z(i) = X(i)  ", "").replace("Z", "X"), "half(N) X")
    assert statement.value.dtype is FLOAT32
    found = program("def f(float(N) X) -> (double(N) Y) { Y(i) +=! X(i) * X(k) }")
    assert found.tensor("Y").dtype is DType.FLOAT64
    assert found.statements[0].value == Cast(Binary("*", x(i), x(k), FLOAT32), DType.FLOAT64)


# calls of defs

LAYER = "def layer(float(B,I) X, float(O,I) W) -> (H) { H(b,o) += X(b,i) * W(o,i) }"


def test_an_inlined_call():
    net = program(
        LAYER
        + "def net(float(B,I) X, float(H,I) V, float(O,H) W) -> (Y) { T = layer(X, V) Y = layer(T, W) Y(b,o) = max(Y(b,o), 0) }"
    )
    assert [(item.name, item.target) for item in net.statements] == [
        ("layer.H", "layer.H"),
        ("layer#2.H", "layer#2.H"),
        ("Y#2", "Y"),
    ]
    assert [item.view_of for item in net.tensors if item.kind != "input"] == [None, "layer.H", "T", None, "layer#2.H"]
    assert (net.tensor("Y").kind, net.tensor("T").kind, net.tensor("layer.H").kind) == (
        "output",
        "temporary",
        "temporary",
    )
    first, second, _ = net.statements
    assert (first.initialize, first.accumulate) == (True, False)
    assert {item.tensor for item in first.reads()} == {"X", "V"}
    assert {item.tensor for item in second.reads()} == {"layer#2.X", "W"}
    assert [(item.left, item.right, item.kind) for item in net.equalities] == [(Size("T.1"), Size("H"), "call")]
    assert [(item.callee, item.arguments, item.targets, item.position) for item in net.calls] == [
        ("layer", ("X", "V"), ("T",), 0),
        ("layer", ("T", "W"), ("Y",), 1),
    ]
    assert all(item.span == net.calls[0].span for item in walk(first.value))


def test_a_function_of_an_earlier_cell():
    known = dict(check(LAYER).programs)
    found = program("def net(float(4,5) X, float(O,5) W) -> (float(P,Q) Y) { Y = layer(X, W) }", known)
    assert found.tensor("Y").declared == (Size("P"), Size("Q"))
    assert not found.equalities
    assert "there is no def" in check("def f(float(N) X) -> (Y) { Y, Z = g(X) }", known).diagnostics[0].message


def test_a_def_of_the_cell_comes_before_an_earlier_one():
    known = dict(check("def g(float(N) X) -> (Y) { Y(i) = 1 where i in 0:N }").programs)
    found = program("def f(float(N) X) -> (Y) { Y = g(X) } def g(float(N) X) -> (Y) { Y(i) = 2 * X(i) }", known)
    assert found.name == "g"


def test_earlier_functions_do_not_take_index_names():
    known = {"i": check(LAYER).programs["layer"]}
    assert program("def f(float(N) X) -> (Y) { Y(i) = X(i) }", known).statements


def test_scalars_and_sizes_are_passed_by_value():
    text = "def cut(float(N) X, int32 n) -> (Y) { Y(i) = X(i) * n where i in 0:n } def f(float(M) X, int32 k) -> (A, B) { A = cut(X, k) B = cut(X, M) }"
    first, second = program(text).statements
    assert first.indices[0].where == (Const(0, INT64), Cast(Read("k", (), INT32), INT64))
    assert second.indices[0].where is not None
    assert {item.name for item in walk(second.indices[0].where[1]) if isinstance(item, Size)} == {"M"}


def test_a_computed_scalar_cannot_bound_a_range():
    text = "def cut(float(N) X, int32 n) -> (Y) { Y(i) = X(i) where i in 0:n } def f(float(M) X) -> (A) { n = 3 A = cut(X, n) }"
    assert found(text) == ["TC306"]


def test_extents_of_a_callee_are_extents_of_its_copy():
    text = "def g(float(N) X) -> (float(P) Y, z) { Y(i) = X(i+1) z = Y.0 + P } def f(float(M) X) -> (a) { Y, z = g(X) a = z + Y.0 }"
    found = program(text)
    assert found.statement("g.z").value == Binary("+", Size("g.Y.0"), Size("g.Y.0"), INT64)
    assert found.statement("a").value == Binary("+", Read("z", (), INT64), Size("Y.0"), INT64)


def test_a_chain_of_calls_in_any_order():
    text = (
        " ".join(f"def f{n}(float(N) X) -> (Y) {{ Y = f{n + 1}(X) }}" for n in range(40))
        + " def f40(float(N) X) -> (Y) { Y(i) = X(i) }"
    )
    checked = check(text)
    assert not checked.broken
    assert next(iter(checked.programs)) == "f0"
    assert len(checked.programs["f0"].statements) == 1


def test_calls_cannot_grow_without_end():
    text = "def f0(float(N) X) -> (Y) { Y(i) = X(i) }" + " ".join(
        f"def f{n + 1}(float(N) X) -> (Y) {{ A = f{n}(X) Y = f{n}(A) }}" for n in range(40)
    )
    checked = check(text)
    assert [item.code.number for item in checked.diagnostics] == ["TC503"]
    assert "f40" in checked.broken
    assert "f3" not in checked.broken


# mistakes; the literate cases have most of them


def test_a_def_with_a_mistake_keeps_what_has_a_meaning():
    checked = check("def f(float(N,M) X) -> (Y, Z) { Y(i) = X(i,j) Z(i) = unknown(i) W(i) = Z(i) + X(i,0) }")
    assert checked.broken == {"f"}
    assert [item.code.number for item in checked.diagnostics] == ["TC204", "TC201"]
    assert [item.name for item in checked.programs["f"].statements] == ["Y"]
    assert checked.programs["f"].statements[0].operator == "="


def test_one_mistake_is_told_once():
    assert found(
        "def f(float(N) X) -> (Y) { T(i) = unknown(i) + unknown(i) U(i) = T(i) * 2 Y(i) = U(i, i) + T(i) U(i) = 1 }"
    ) == ["TC201"]


def test_callers_of_a_broken_def_are_broken_in_silence():
    checked = check("def g(float(N) X) -> (Y) { Y(i) = nothing(i) } def f(float(N) X) -> (Y) { Y = g(X) }")
    assert checked.broken == {"f", "g"}
    assert len(checked.diagnostics) == 1


def test_a_broken_statement_defines_something_unknown():
    source = SourceText("def f(float(N) X) -> (Y) { T(i) = X(i) X(i) Y(i) = T(i) + T(i, j) }")
    parsed = parse_tc(source)
    checked = check_tc(parsed.unit, source)
    assert checked.broken == {"f"}
    assert not checked.diagnostics


def test_fixes_are_edits_of_the_text():
    text = "def f(float(N,M) X) -> (Y) { Y(i) = X(i,j) }"
    (item,) = check(text).diagnostics
    (edit,) = item.fix.edits
    assert found(text[: edit.span.start] + edit.text + text[edit.span.end :]) == []


@pytest.mark.parametrize(
    ("names", "warns"),
    [
        (("row", "roww"), True), (("rows", "row"), True), (("i", "j"), False), (("k1", "k2"), False), (("idx1", "idx2"), False),
        (("idx", "idx1"), False), (("kk", "k"), False), (("Row", "row"), True), (("ab", "abc"), False),
    ],
)  # fmt: skip
def test_likely_typos(names, warns):
    first, second = names
    text = f"def f(float(N,M) A, float(M) B) -> (Y) {{ Y({first}) +=! A({first}, {second}) + A({first}, q) * B(q) }}"
    assert ("TC233" in found(text)) == warns


def test_sizes_and_tensors_may_differ_from_indices_in_case():
    assert found("def f(float(N,K) A, float(K) X) -> (Y) { Y(n) +=! A(n, x) * X(x) + A(n, k) }") == []


@pytest.mark.parametrize(("name", "bound"), [("f", "f"), ("2fc", "_2fc"), ("lambda", "lambda_"), ("_", "_")])
def test_python_names(name, bound):
    assert python_name(name) == bound
    assert python_name(name).isidentifier()


def test_a_cell_with_thousands_of_unknown_names():
    text = "def f(float(N) X) -> (Y) { " + " ".join(f"T{n}(i) = unknown{n}(i)" for n in range(3000)) + " Y(i) = X(i) }"
    assert len(found(text)) > 400


def test_lets_cannot_grow_without_end():
    lets = ", ".join(f"v{n + 1} = v{n} + v{n}" for n in range(60))
    assert found(f"def f(float(N) X) -> (Y) {{ Y(i) = v60 where v0 = X(i), {lets} }}") == ["TC503"]
    lets = ", ".join(f"v{n + 1} = v{n} + 1" for n in range(500))
    assert found(f"def f(float(N) X) -> (Y) {{ Y(i) = v500 where v0 = X(i), {lets} }}") == ["TC503"]


def test_every_function_is_accepted_with_its_number_of_arguments():
    for function in FUNCTIONS.values():
        arguments = ", ".join(["X(i)"] * function.arity)
        signature = "int(N) X" if function.kind == "bits" else "float(N) X"
        statement = only(f"Y(i) = {function.name}({arguments})", signature)
        assert statement.value.dtype is {"test": BOOL, "bits": INT32}.get(function.kind, FLOAT32)
        assert function.document
        assert function.signature.startswith(function.name + "(")


# any expression


TENSORS = (
    "float(N) X, int(N) n, uint8(N) u, uint64(N) w, half(N) h, bfloat16(N) g, bool(N) b, double(N) d, float s, int32 m"
)
LEAVES = st.sampled_from(
    [
        "X(i)",
        "n(i)",
        "u(i)",
        "w(i)",
        "h(i)",
        "g(i)",
        "b(i)",
        "d(i)",
        "s",
        "m",
        "N",
        "X.0",
        "i",
        "1",
        "300",
        "3000000000",
        "0.1",
        "2.f",
        "7u",
        "true",
        "inf",
    ]
)


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(pair, st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "&&", "||"])).map(
            lambda t: f"({t[0][0]} {t[1]} {t[0][1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} > 0 ? {t[1]} : {t[2]})"),
        st.tuples(
            st.sampled_from(
                ["exp", "abs", "sign", "floor", "isnan", "-", "!", "int32", "half", "double", "bool", "uint8"]
            ),
            inner,
        ).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(st.sampled_from(["min", "max", "pow", "hypot"]), pair).map(lambda t: f"{t[0]}({t[1][0]}, {t[1][1]})"),
        inner.map(lambda t: f"X({t})"),
    )


@drawn(125, 500, st.recursive(LEAVES, grow, max_leaves=12), st.sampled_from(["=", "+=!", "max=!"]))
def test_every_expression_is_typed_or_refused(text, operator):
    source = SourceText(f"def f({TENSORS}) -> (Y) {{ Y(i) {operator} {text} where i in 0:N }}")
    parsed = parse_tc(source)
    checked = check_tc(parsed.unit, source)
    render(checked.diagnostics, source)
    if checked.broken:
        assert any(item.is_error for item in (*parsed.diagnostics, *checked.diagnostics))
        return
    for statement in checked.programs["f"].statements:
        assert statement.value.dtype is checked.programs["f"].tensor("Y").dtype.compute
        for node in walk(statement.value):
            well_typed(node)


def well_typed(node: Expr) -> None:
    """The laws of `expr.py`: equal operand types, 16-bit floats only in reads and casts, index expressions in 64 bits."""
    match node:
        case Binary():
            assert node.left.dtype is node.right.dtype
            assert node.dtype is (BOOL if node.op in COMPARISONS | LOGICAL else node.left.dtype)
            assert node.left.dtype.compute is node.left.dtype
            assert node.op != "/" or node.dtype.is_float
            assert node.op != "//" or node.dtype.is_integer
        case Unary():
            assert node.dtype is node.operand.dtype
            assert node.dtype.compute is node.dtype
        case Select():
            assert node.condition.dtype is BOOL
            assert node.then.dtype is node.otherwise.dtype is node.dtype
        case Read():
            assert all(index.dtype is INT64 for index in node.indices)
        case Call():
            assert node.function in FUNCTIONS
            assert node.function.startswith("is") or all(item.dtype is node.dtype for item in node.arguments)
        case Const():
            assert node.dtype.compute is node.dtype
            if node.dtype.is_integer:
                assert isinstance(node.value, int)
                assert node.dtype.limits[0] <= node.value <= node.dtype.limits[1]
            elif node.dtype.is_float:
                assert isinstance(node.value, float)
        case Cast():
            assert node.dtype is not node.operand.dtype
        case Size() | IndexVar():
            assert node.dtype is INT64


WORDS = st.sampled_from(
    [
        "Y(i)",
        "=",
        "X(i)",
        "X",
        "Y",
        "i",
        "N",
        "k(j)",
        "g(X)",
        "=",
        "P,",
        "Q",
        "+=",
        "+=!",
        "max=!",
        "1",
        "2.5",
        "X.0",
        "X.7",
        "where",
        "k",
        "in",
        "0:N",
        "i",
        "in",
        "0:3",
        "v",
        "=",
        "exists",
        "?",
        ":",
        "+",
        "*",
        "&&",
        "!",
        "(",
        ")",
        ",",
        "min(1,",
        "n(i))",
    ]
)


@drawn(75, 300, st.lists(WORDS, max_size=30))
def test_any_words_are_checked_without_an_exception(words):
    source = SourceText(
        "def f(float(N) X, int(N) n) -> (Y) { "
        + " ".join(words)
        + " }\ndef g(float(N) X) -> (Y, Z) { Y(i) = X(i) Z = 1 }"
    )
    parsed = parse_tc(source)
    checked = check_tc(parsed.unit, source)
    assert "g" not in checked.broken or parsed.unit.defs[-1].broken
    starts = [item.span.start for item in checked.diagnostics]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("name", "operator"),
    [("sum", "+=!"), ("prod", "*=!"), ("argmin", "min=!"), ("max", "max=!"), ("softmax", "P = softmax(X)")],
)
@pytest.mark.parametrize("argument", ["X(i,j)", "X"])
def test_functions_that_are_operators_say_which(name, operator, argument):
    (found,) = check(f"def f(float(N,M) X) -> (Y) {{ Y(i) = {name}({argument}) }}").diagnostics
    assert operator in (found.help or "")


def test_a_tensor_of_nearly_that_name_comes_first():
    found = check("def f(float(N,M) sums) -> (Y) { Y(i) = sum(sums(i,0)) }").diagnostics
    assert any("did you mean `sums`" in (each.help or "") for each in found)


@pytest.mark.parametrize(
    ("exponent", "products"), [("2", 1), ("3", 2), ("4.0", 3), ("5", 0), ("-2", 0), ("2.5", 0), ("n", 0)]
)
def test_small_powers_are_products(exponent, products):
    found = check(f"def f(half(N) X, float n) -> (Y) {{ Y(i) = pow(X(i), {exponent}) + n }}").programs["f"]
    nodes = [node for node in walk(found.statements[0].value) if isinstance(node, Binary | Call)]
    assert sum(isinstance(node, Binary) and node.op == "*" for node in nodes) == products
    assert any(isinstance(node, Call) for node in nodes) is (products == 0)


def test_powers_of_powers_are_written_while_they_are_short():
    power = "X(i)"
    for _ in range(12):
        power = f"pow({power}, 4)"
    value = check(f"def f(float(N) X) -> (Y) {{ Y(i) = {power} }}").programs["f"].statements[0].value
    assert len(list(walk(value))) < 1000


@pytest.mark.parametrize(
    "body",
    [
        "Y(i) = X(i)  Y(i) = 0 where m > 0",
        "Y(i) = X(i)  Y(i) = 0 where X(i) > 0, m > 0",
        "Y(i) = X(i) where exists m",
        "Y(i) = X(i) where exists X(m)",
        "Y(i) = v where v = X(i) + m",
        "Y(i) +=! X(k) where i in 0:N, k in m(i):m",
        "Y(i) +=! X(k) where i in 0:N, k in min(m, 0):m(i)",
        "Y(i) argmax=! X(k) at m where i in 0:N",
        "Y(i) = (X(i + 1) else m) where i in 0:N",
        "Y(i) = X(i)  Y(i) = 0 where i in 0:N, X(m) > X(i)",
        "Y(m + i) +=! X(i)",
    ],
)
def test_an_array_without_indices_is_told_of_wherever_it_stands(body: str) -> None:
    """Else the statement is left out without a word. The fix, where there is one, is right."""
    text = f"def f(float(N) X, int(N) m) -> (float(N) Y) {{ {body} }}"
    messages = [each for each in check(text).diagnostics if each.code.number == "TC202"]
    assert len(messages) == 1
    if (fix := messages[0].fix) is not None:
        for edit in sorted(fix.edits, key=lambda each: -each.span.start):
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        assert not {"TC202", "TC305"} & set(found(text)), text


@pytest.mark.parametrize(
    "body",
    [
        "Y(i) = foo(i) + X(i) along i",
        "Y(i) = (foo(i - 1) else 0) + X(i) along i",
        "Y(i) = (i > 0 ? foo(i - 1) : 0) + (Y(i - 1) else 0) along i",
        "Y(i) +=! foo(i, k) + (Y(i - 1) else 0) where i in 0:N, k in 0:3 along i",
        "along t in 0:N { Y(t) = foo(t) + (Y(t - 1) else 0) }",
        "along t in 0:N { Z = foo(t)  Y(t) = Z + (Y(t - 1) else 0) }",
        "Y(i) = 0 where i in 0:N  Y(i) = foo(i)",
    ],
)
def test_an_unknown_name_is_told_of_though_its_type_was_looked_for(body: str) -> None:
    """What is tried without a message must not count as told: the statement was left out without a word."""
    assert found(f"def f(float(N) X) -> (Y) {{ {body} }}").count("TC201") == 1


@pytest.mark.parametrize(
    "body", ["W(i) = U  W = V", "D(i) = U(i)  E(i) = U + U(i + 1)  W = D + E", "E(i) = U  W = E + V"]
)
def test_whole_arrays_of_which_one_has_a_mistake_are_told_of_once(body: str) -> None:
    assert found(f"def f(float(N) U, float(N) V) -> (W) {{ {body} }}").count("TC202") == 1


@pytest.mark.parametrize("left", ["B()", "B"])
def test_a_product_of_complex_numbers_has_the_indices_of_its_target(left: str) -> None:
    assert "TC202" in found(f"def f(complex64(N) X, double(N) D) -> (B) {{ B(i) = X(i)  {left} *= D(i) }}")
