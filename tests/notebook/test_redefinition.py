"""A def that is run again, edited: functions of earlier cells that call it use the new one, as Python's do."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import tc_jupyter as tc

X = np.arange(5, dtype=np.float32)


def f(value: str, kind: str = "float") -> str:
    return f"%%tc\ndef f({kind}(N) X) -> (Y) {{ Y(i) = {value} }}"


G = "%%tc\ndef g(float(N) X) -> (Z) {\n    T = f(X)\n    Z(i) = T(i) + 1\n}"
H = "%%tc\ndef h(float(N) X) -> (W) {\n    U = g(X)\n    W(i) = U(i) * 10\n}"


def test_callers_use_what_is_defined_last(session):
    for cell in (f("X(i) * 2"), G, H):
        session(cell)
    g, h = session.names["g"], session.names["h"]
    for _ in range(3):  # the general way, and the short ones
        np.testing.assert_array_equal(h(X), (2 * X + 1) * 10)
    session(f("X(i) * 3"))
    assert "`g`, `h` of earlier cells" in session.out
    assert session.names["g"] is g
    for _ in range(3):
        np.testing.assert_array_equal(g(X), 3 * X + 1)
        np.testing.assert_array_equal(h(X=X), (3 * X + 1) * 10)
        np.testing.assert_array_equal(h(X, out=np.empty_like(X)), (3 * X + 1) * 10)
    assert "* 3" in g.source("loops")
    session(f("X(i) * 3"))
    assert "earlier cells" not in session.out
    session(f("X(i) * 4"))
    np.testing.assert_array_equal(h(X), (4 * X + 1) * 10)


@pytest.mark.parametrize(
    "beside", [G[5:], G[5:].replace("f(X)", "between(X)") + "\ndef between(float(N) X) -> (Y) { Y = f(X) }"]
)
def test_callers_through_defs_of_their_own_cell_use_what_is_defined_last(session, beside):
    session(f("X(i) * 2"))
    session(f"%%tc\n{beside}\n{H[5:]}")
    h = session.names["h"]
    assert h.callees.keys() == {"f"}
    np.testing.assert_array_equal(h(X), (2 * X + 1) * 10)
    session(f("X(i) * 3"))
    assert "`h`" in session.out
    np.testing.assert_array_equal(h(X), (3 * X + 1) * 10)


def test_sac_callers_through_functions_of_their_own_cell_use_what_is_defined_last(session):
    session("%%sac\ndouble[.] f(double[.] x) { return x * 2.0; }")
    session("%%sac\ndouble[.] g(double[.] x) { return f(x) + 1.0; }\ndouble[.] h(double[.] x) { return g(x) * 10.0; }")
    h, x = session.names["h"], X.astype(np.float64)
    np.testing.assert_array_equal(h(x), (2 * x + 1) * 10)
    session("%%sac\ndouble[.] f(double[.] x) { return x * 3.0; }")
    np.testing.assert_array_equal(h(x), (3 * x + 1) * 10)


def test_what_jax_has_compiled_stays_and_the_cell_says_so(session):
    jax = pytest.importorskip("jax")
    session(f("X(i) + 2"))
    session(G)
    g, x = session.names["g"], jax.numpy.arange(3, dtype=np.float32)
    assert jax.jit(g)(x).tolist() == [3, 4, 5]
    session(f("X(i) + 5"))
    assert "`g` of earlier cells: the next call uses what is defined here" in session.out
    assert "what JAX has compiled uses what was defined before, until `jax.clear_caches()`" in session.out
    assert jax.jit(g)(x).tolist() == [3, 4, 5]
    jax.clear_caches()
    assert jax.jit(g)(x).tolist() == [6, 7, 8]


def test_a_reducer_that_is_defined_again_is_used_or_marks_who_uses_it(session):
    session("%%tc\nreduce r(float a, float b) = a + b from 0")
    session("%%tc\ndef f(float(N) X) -> (Y) { Y r=! X(n) }")
    f, ones = session.names["f"], 2 * np.ones(5, np.float32)
    assert f(ones) == 10
    session("%%tc\nreduce r(float a, float b) = a * b from 1")
    assert "`f` of earlier cells" in session.out
    assert f(ones) == 32
    session("%%tc\nreduce r(float a, float b, float c, float d) = (a + c, b + d) from (0, 0)")
    assert "`f` calls `r`, which was defined again: `r` has 2 components, and here is 1 target" in session.out
    with pytest.raises(tc.CallError, match="TC615"):
        f(ones)


def test_a_comment_that_names_a_caller_is_no_call(session):
    for value in ("X(i) * 2", "X(i) * 3", "X(i) * 4"):
        session(f(value) + "  # for g(X) and h")
        session.names.get("g") or session(G)
        np.testing.assert_array_equal(session.names["g"](X), int(value[-1]) * X + 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(session.names["g"]))(X), 4 * X + 1)


def test_defs_of_two_cells_may_call_each_others_neighbours(session):
    other = " def k(float(N) X) -> (Y) { T = g(X) Y(i) = T(i) * 10 }"
    session(f("X(i) * 2"))
    session(G)
    for value in ("X(i) * 3", "X(i) * 4", "X(i) * 5"):
        session(f(value) + other)
        np.testing.assert_array_equal(session.names["k"](X), (int(value[-1]) * X + 1) * 10)


def test_a_caller_that_does_not_fit_says_so(session):
    for cell in (f("X(i) * 2"), G, H):
        session(cell)
    g, h = session.names["g"], session.names["h"]
    session(f("X(i) * 2", "double"))
    assert "`g` calls `f`, which was defined again: " in session.out
    assert "TC615" in session.out
    for stale in (g, h):
        with pytest.raises(tc.CallError, match="TC615"):
            stale(X)
        with pytest.raises(tc.CallError, match="TC615"):
            stale(X, out=np.empty_like(X))
        with pytest.raises(tc.CallError, match="TC615"):
            stale.source("loops")
        with pytest.raises(tc.CallError, match="TC615"):
            pickle.dumps(stale)
    session("%tc list")
    assert "stale: `g` calls `f`" in session.out
    session(f("X(i) * 5"))
    np.testing.assert_array_equal(h(X), (5 * X + 1) * 10)


def test_what_does_not_fit_is_said_once(session):
    """Of a function, of the same one with a schedule, and on another engine."""
    session(f("X(i) * 2"))
    session(G)
    session("scheduled = g.with_schedule(g.schedule()); elsewhere = g.on('interpreter')")
    session(f("X(i) * 2", "double"))
    assert session.out.count("`g` calls `f`, which was defined again") == 1


def test_a_kept_iteration_uses_the_new_def_and_its_shapes(session):
    """What `g.iterate` has given is looked at again: results of another shape or type are no states any more."""
    session(f("X(i) * 2"))
    session(G)
    steps = session.names["g"].iterate(6)
    np.testing.assert_array_equal(steps(X), 64 * X + 63)
    for other in ("X(i) where i in 0:2", "X(i / 2) where i in 0:2*N", "double(X(i))"):
        session(f(other))
        with pytest.raises(tc.CallError, match="TC226"):
            steps(X)
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(steps(X), 729 * X + 364)


def test_the_def_that_does_not_fit_is_named(session):
    """`h` calls `g`, which calls `f`: the cell to run again is that of `g`."""
    for cell in (f("X(i) * 2"), G, H):
        session(cell)
    session("%%tc\ndef f(float(N) X, float(N) W) -> (Y) { Y(i) = X(i) * W(i) }")
    assert "`h` calls `g`, which calls `f`, which was defined again: `f` takes 2 arguments, not 1" in session.out
    said = (
        r"which calls `f`[^\n]*`f` takes 2 arguments(.|\n)*help: run the cell of `g` again .* or define `f` as before"
    )
    with pytest.raises(tc.CallError, match=said):
        session.names["h"](X)
    again = session.fails(H)
    assert "`g` cannot be called: `g` calls `f`, which was defined again" in again
    assert "run the cell of `g` again with a call that fits, or define `f` as before" in again
    session(G.replace("f(X)", "f(X, X)"))
    np.testing.assert_array_equal(session.names["h"](X), (X * X + 1) * 10)


def test_functions_that_only_a_list_holds(session):
    session(f("X(i) * 2"))
    session(G)
    session.names["kept"] = [session.names.pop("g")]
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(session.names["kept"][0](X), 3 * X + 1)
    session(f("X(i) * 4"))
    session(f("X(i) * 5"))
    np.testing.assert_array_equal(session.names["kept"][0](X, out=np.empty_like(X)), 5 * X + 1)


def test_a_name_that_python_gave_stays(session):
    session(f("X(i) * 2"))
    session("k = f")
    session(G.replace("f(X)", "k(X)"))
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(session.names["g"](X), 2 * X + 1)


BETWEEN = (
    "del f",
    "f = 3",
    "import math as f",
    "f = f(X)",
    "import copy\nf = copy.copy(f)",
    "f = g",
    "f = f.on('interpreter')",
)


@pytest.mark.parametrize("between", BETWEEN)
def test_a_name_may_mean_something_else_in_between(session, between):
    session.names["X"] = X
    session(f("X(i) * 2"))
    session(G)
    session(between)
    np.testing.assert_array_equal(session.names["g"](X), 2 * X + 1)
    session(f("X(i) * 5"))
    np.testing.assert_array_equal(session.names["g"](X), 5 * X + 1)
    session(between)
    session("%%tc\ndef f(float(N) X, float(N) Z) -> (Y) { Y(i) = X(i) * Z(i) }")
    assert session.names["g"].stale is not None


def test_a_function_without_a_name_follows(session):
    session(f("X(i) * 2"))
    session(G)
    session("kept = [g]\ndel g, f")
    session(f("X(i) * 5"))
    np.testing.assert_array_equal(session.names["kept"][0](X), 5 * X + 1)


def test_a_circle_through_a_deleted_name_is_refused(session):
    for cell in (f("X(i) * 2"), G, H):
        session(cell)
    session("del f")
    assert "TC214" in session.fails("%%tc\ndef f(float(N) X) -> (Y) { Y = h(X) }")
    np.testing.assert_array_equal(session.names["h"](X), (2 * X + 1) * 10)


def test_a_copy_is_the_function(session):
    session(f("X(i) * 2"))
    session(G)
    session("import copy\ncopies = copy.deepcopy([g, copy.copy(g)])")
    session(f("X(i) * 5"))
    for each in session.names["copies"]:
        np.testing.assert_array_equal(each(X), 5 * X + 1)


def test_other_engines_and_schedules_follow(session):
    session(f("X(i) * 2"))
    session(G)
    session("slow = g.on('interpreter')\nwith_steps = g.with_schedule(g.schedule())")
    session(f("X(i) * 3"))
    for name in ("slow", "with_steps"):
        np.testing.assert_array_equal(session.names[name](X), 3 * X + 1)


DERIVED = (
    "g.jvp()",
    "g.vjp(save='Z', ties='split')",
    "g.vjp().with_schedule(g.vjp().schedule())",
    "g.on('interpreter').vjp(wrt='X').jvp()",
)


@pytest.mark.parametrize("derived", DERIVED)
def test_derivatives_follow_what_they_are_derived_from(session, derived):
    """Those that were kept stayed those of the first def, and nothing said so."""
    session(f("X(i) * X(i)"))
    session(G)
    session(f"kept = {derived}")
    kept = session.names["kept"]
    arguments = [(k + 1) * X for k in range(len(kept.program.parameters))]
    before = kept(*arguments)
    session(f("X(i) * X(i) * X(i)"))
    assert f"`g`, `{kept.written_name}` of earlier cells" in session.out
    session(f"fresh = {derived}")
    fresh = session.names["fresh"]
    np.testing.assert_array_equal(kept(*arguments), fresh(*arguments))
    assert not np.array_equal(kept(*arguments), before)
    assert kept.text == fresh.text
    assert kept.source("loops") == fresh.source("loops")
    assert pickle.loads(pickle.dumps(kept)).text == fresh.text
    assert list(kept.callees) == list(fresh.callees)


def test_what_calls_a_derivative_follows_too(session):
    session(f("X(i) * X(i)"))
    session(G)
    session("down = g.vjp()")
    session("%%tc\ndef step(float(N) X) -> (Y) {\n    D = down(X, X)\n    Y(i) = X(i) - D(i)\n}")
    session(f("sin(X(i))"))
    np.testing.assert_allclose(session.names["step"](X), X - X * np.cos(X), rtol=1e-6)
    assert "TC214" in session.fails("%%tc\ndef f(float(N) X) -> (Y) { Y = down(X, X) }")


def test_a_derivative_that_does_not_fit_any_more_says_so(session):
    session(f("X(i) * X(i)"))
    session(G)
    session("down = g.vjp()")
    down = session.names["down"]
    session(f("X(i) * 2", "double"))
    assert "`g_vjp` belongs to `g`, which calls `f`, which was defined again" in session.out
    with pytest.raises(tc.CallError, match="TC615"):
        down(X, X)
    with pytest.raises(tc.CallError, match="TC615"):
        pickle.dumps(down)
    session(f("int32(X(i))"))
    assert "`g_vjp` belongs to `g`, which calls what was defined again" in session.out
    with pytest.raises(tc.CallError, match=r"TC615(.|\n)*has no gradient"):
        down(X, X)
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(down(X, X), 3 * X)


def test_a_derivative_of_a_def_that_is_defined_again_itself_stays(session):
    """As `other = f` does: the name `f` means something else now."""
    session(f("X(i) * X(i)"))
    session("down = f.vjp()")
    session(f("X(i) * 7"))
    assert "earlier cells" not in session.out
    np.testing.assert_array_equal(session.names["down"](X, X), 2 * X * X)


def test_a_derivative_of_ones_own_follows(session):
    """Plain calls used the derivative that the def had when it got it."""
    session(f("X(i) * 2"))
    session(G)
    session("%%tc\ndef rule(float(N) X, float(N) dZ) -> (dX) {\n    T = f(X)\n    dX(i) = T(i) * dZ(i)\n}")
    session("own = g.with_vjp(rule, check=False)")
    down = session.names["own"].vjp()
    np.testing.assert_array_equal(down(X, X), 2 * X * X)
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(down(X, X), 3 * X * X)
    np.testing.assert_array_equal(session.names["own"].vjp()(X, X), 3 * X * X)


@pytest.mark.parametrize("dims", [".", "*"])
def test_derivatives_of_the_other_language_follow_for_their_ranks(session, dims):
    session(f("X(i) * X(i)"))
    session(f"%%sac\nfloat[{dims}] k(float[{dims}] a) {{ return f(a) + a; }}")
    session.names["k"](X)
    session("down = k.vjp()")
    session(f("X(i) * 3"))
    np.testing.assert_array_equal(session.names["down"](X, X), 4 * X)


@pytest.mark.parametrize("dims", [".", "*"])
def test_schedules_of_the_other_language_follow_for_their_ranks(session, dims):
    """The cell ended in an error of ours where ranks are open, and elsewhere the checks of calls were gone."""
    session(f("X(i) * 2"))
    session(f"%%sac\nfloat[{dims}] k(float[{dims}] a, float[.] b) {{ return f(b) + a; }}")
    session.names["k"](X, X)
    session("with_steps = k.with_schedule(k.schedule())")
    session(f("X(i) * 3"))
    with_steps = session.names["with_steps"]
    np.testing.assert_array_equal(with_steps(X, X), 4 * X)
    with pytest.raises(tc.CallError, match="TC654"):
        with_steps(X, X[:4])
    session("%%tc\ndef f(float(N, M) X) -> (Y) { Y(i, j) = X(i, j) }")
    with pytest.raises(tc.CallError, match="TC615"):
        with_steps(X, X)


def test_a_circle_is_refused_and_nothing_changes(session):
    for cell in (f("X(i) * 2"), G, H):
        session(cell)
    shown = session.fails("%%tc\ndef f(float(N) X) -> (Y) { Y = h(X) }")
    assert "TC214" in shown
    assert "`f` -> `h` -> `g` -> `f`" in shown
    np.testing.assert_array_equal(session.names["h"](X), (2 * X + 1) * 10)


def test_cells_with_several_defs(session):
    session("%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) * 2 }\ndef other(float(N) X) -> (Y) { Y(i) = X(i) }")
    session(G + "\ndef more(float(N) X) -> (Y) { Y(i) = X(i) }")
    both = "%%tc\ndef f(float(N) X) -> (Y) { Y(i) = X(i) * 3 }\ndef g(float(N) X) -> (Z) { Z = f(X) }"
    session(both)
    np.testing.assert_array_equal(session.names["g"](X), 3 * X)


def test_functions_of_compile_are_closed():
    first = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) * 2 }", target="interpreter").f
    caller = tc.compile("def g(float(N) X) -> (Y) { Y = f(X) }", known={"f": first}, target="interpreter").g
    tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) * 3 }", target="interpreter")
    np.testing.assert_array_equal(caller(X), 2 * X)


def test_calls_of_other_threads_see_one_or_the_other(session):
    session(f("X(i) * 2"))
    session(G)
    g, found, done = session.names["g"], set(), threading.Event()

    def work() -> None:
        while not done.is_set():
            found.add(float(g(X)[1]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    session(f("X(i) * 3"))
    done.set()
    for thread in threads:
        thread.join()
    assert found <= {3.0, 4.0}
    assert g(X)[1] == 4


def test_sac_functions_call_what_is_defined_last(session):
    session("%%sac\nfloat[*] f(float[*] a) { return a + 1; }")
    session("%%sac\nfloat[*] g(float[*] a) { return f(a) * 2; }")
    np.testing.assert_array_equal(session.names["g"](X), (X + 1) * 2)
    session("%%sac\nfloat[*] f(float[*] a) { return a + 5; }")
    np.testing.assert_array_equal(session.names["g"](X), (X + 5) * 2)


def test_functions_of_cells_that_call_each_other_are_pickled(session):
    """Not the cells refer to each other, but their defs."""
    h = "\n\ndef h(float(N) X) -> (W) {\n    U = f(X)\n    W(i) = U(i) * 10\n}"
    session("%%tc\ndef g(float(N) X) -> (Z) { Z(i) = X(i) + 1 }")
    session("%%tc\ndef f(float(N) X) -> (Y) { T = g(X) Y(i) = T(i) * 2 }")
    session("%%tc\ndef g(float(N) X) -> (Z) { Z(i) = X(i) + 3 }" + h)
    session("%%tc\ndef g(float(N) X) -> (Z) { Z(i) = X(i) + 4 }" + h)
    assert session.out.count("`h`") == 0
    for name, expected in (("g", X + 4), ("f", 2 * X + 8), ("h", 20 * X + 80)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(session.names[name]))(X), expected)
        np.testing.assert_array_equal(session.names[name].on("interpreter")(X), expected)


def test_a_neighbour_that_does_not_fit_any_more_outdates_its_own_callers_only(session):
    session(f("X(i) * 2"))
    session("%%tc\ndef k(float(N) X) -> (Z) { Z(i) = X(i) + 1 }")
    session(G + "\ndef j(float(N) X) -> (W) { U = k(X) W(i) = U(i) * 10 }")
    session("%%tc\ndef f(float(N, M) X) -> (Y) { Y(i, j) = X(i, j) * 2 }")
    session("%%tc\ndef k(float(N) X) -> (Z) { Z(i) = X(i) + 2 }")
    assert session.names["g"].stale is not None
    assert session.names["j"].stale is None
    np.testing.assert_array_equal(session.names["j"](X), 10 * X + 20)


def test_a_neighbour_that_folds_is_pickled_too(session):
    add = "int add1(int a, int b) { return a + b; }\n"
    session(
        "%%sac\n" + add + "int total(int[.] a) { return with { ([0] <= iv < shape(a)) : a[iv]; } : fold(add1, 0); }"
    )
    total = session.names["total"]
    assert pickle.loads(pickle.dumps(total))(np.arange(5, dtype=np.int32)) == 10


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ("f = len", "`f` is a Python function here, and no longer the def of cell {}: run that cell again"),
        ("kept = f; f = len", "`f` is a Python function here, and no longer the def of cell {}: run that cell again"),
        ("import math as f", "`f` is a Python module here, and no longer the def of cell {}"),
        ("f = 3", "`f` is a value of type `int` here, and no longer the def of cell {}"),
        ("kept = f; del f", "the name `f` was deleted, which was the def of cell {}: run that cell again"),
    ],
)
@pytest.mark.parametrize("caller", [G, "%%sac\nfloat[*] g(float[*] a) { return f(a) * 2; }"])
def test_a_name_that_is_no_function_any_more_is_not_called(session, between, said, caller):
    number = session.shell.run_cell(f("X(i) * 2"), store_history=True).execution_count
    session(between)
    shown = " ".join(session.fails(caller).split())
    assert "TC201" in shown
    assert said.format(number) in shown
    session(f("X(i) * 2"))
    session(G)
    np.testing.assert_array_equal(session.names["g"](X), 2 * X + 1)


def test_callers_of_one_name_are_told_once(session):
    session(f("X(i) * 2"))
    session(G)
    session("kept = g")
    session(G)
    session(f("X(i) * 3"))
    assert "`g` of earlier cells" in session.out
    assert "`g`, `g`" not in session.out


@pytest.mark.parametrize("between", ["a1 = len", "del a1"])
def test_a_name_that_was_a_def_resembles_no_function(session, between):
    session(f("X(i) * 2").replace("def f(", "def a1("))
    session(between)
    shown = " ".join(session.fails(G.replace("f(X)", "a1(X)")).split())
    assert "run that cell again" in shown
    assert "j1" not in shown


def test_a_name_that_never_was_a_def(session):
    session("f = len")
    assert "`f` is a Python function here, and a def calls defs only" in session.fails(G)


def test_a_def_does_not_bear_the_name_of_a_function(session):
    assert "a def cannot have the name of the function `exp`" in session.fails(f("X(i)").replace("def f(", "def exp("))


def test_a_function_of_the_other_language_hides_none(session):
    session("%%sac\nfloat[*] relu(float[*] a) { return a * 2f; }")
    assert "`relu` is a function of the language, and one of an earlier cell" in session.fails(
        G.replace("f(X)", "relu(X)")
    )


def test_an_imported_function_is_called_by_new_cells(session):
    session(f("X(i) * 2"))
    session(G)
    session.names["f"] = tc.compile("def f(float(N) X) -> (Y) { Y(i) = X(i) * 7 }").f
    session(H.replace("g(X)", "f(X)"))
    np.testing.assert_array_equal(session.names["h"](X), 70 * X)
    np.testing.assert_array_equal(session.names["g"](X), 2 * X + 1)  # compiled before
    session(G)
    np.testing.assert_array_equal(session.names["g"](X), 7 * X + 1)
