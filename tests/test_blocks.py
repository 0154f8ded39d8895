"""Statements step by step: `along t in 0:T { ... }`, against loops in Python, PyTorch, and every small order."""

import itertools
from random import Random

import numpy as np
import pytest

import tc_jupyter as tc
from tc_jupyter.schedule import schedule_of
from tests.tc_programs import drawn_blocks, judge

RNN = """def rnn(float(T, B, I) X, float(H, I) W, float(H, H) U, float(B, H) h0) -> (h) {
    along t in 0:T {
        Z(b, o) +=! X(t, b, i) * W(o, i)
        R(b, o) +=! (t > 0 ? h(t-1, b, k) : h0(b, k)) * U(o, k)
        h(t, b, o) = tanh(Z(b, o) + R(b, o))
    }
}"""


def drawn(seed, *shapes):
    random = np.random.default_rng(seed)
    return [(random.standard_normal(shape) / 2).astype(np.float32) for shape in shapes]


def rnn_of(x, w, u, h):
    found = []
    for each in x:
        h = np.tanh(each @ w.T + h @ u.T)
        found.append(h)
    return np.array(found)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("sizes", [(6, 3, 4, 5), (2, 1, 1, 1), (9, 2, 3, 37)])
def test_recurrent_net(target, sizes):
    steps, batch, width, hidden = sizes
    args = drawn(0, (steps, batch, width), (hidden, width), (hidden, hidden), (batch, hidden))
    f = tc.compile(RNN, target=target).rnn
    np.testing.assert_allclose(f(*args), rnn_of(*args), rtol=1e-5, atol=1e-5)
    assert f(args[0][:0], *args[1:]).shape == (0, batch, hidden)


@pytest.mark.parametrize("made", ["Z(o)", "Z(t, o)"])
def test_extents_of_what_a_step_makes(made):
    place = made.count(",")
    text = f"""def f(float(T, N) X) -> (h) {{ along t in 0:T {{
        {made} = (h(t-1, o) else 0) + X(t, o)
        S(t, o) = float(Z.{place}) where o in 0:Z.{place}
        h(t, o) = {made} + S(t, o)
    }} }}"""
    f = tc.compile(text, target="interpreter").f
    np.testing.assert_array_equal(f(np.ones((2, 3), np.float32)), [[4, 4, 4], [8, 8, 8]])


def test_a_def_with_nested_blocks_is_called_twice():
    module = tc.compile(
        """def summed(float(T, N) X) -> (h) { along t in 0:T { along i in 0:N {
            a(t, i) = (h(t-1, i) else 0) + (h(t, i-1) else 0)
            h(t, i) = a(t, i) + X(t, i)
        } } }
        def twice(float(T, N) X) -> (B) { A = summed(X)  B = summed(A) }""",
        target="interpreter",
    )
    (x,) = drawn(3, (3, 4))
    np.testing.assert_array_equal(module.twice(x), module.summed(module.summed(x)))


def test_lstm_is_that_of_torch():
    torch = pytest.importorskip("torch")
    f = tc.compile(
        """def lstm(float(T, B, I) X, float(4, H, I) W, float(4, H, H) U, float(4, H) b) -> (h, c) {
            along t in 0:T {
                G(g, n, o) +=! X(t, n, i) * W(g, o, i)
                R(g, n, o) +=! (h(t-1, n, k) else 0) * U(g, o, k) where k in 0:H, n in 0:B
                A(g, n, o) = G(g, n, o) + R(g, n, o) + b(g, o)
                c(t, n, o) = sigmoid(A(1, n, o)) * (c(t-1, n, o) else 0) + sigmoid(A(0, n, o)) * tanh(A(2, n, o))
                h(t, n, o) = sigmoid(A(3, n, o)) * tanh(c(t, n, o))
            }
        }"""
    ).lstm
    x, w, u, b = drawn(1, (5, 2, 3), (4, 7, 3), (4, 7, 7), (4, 7))
    net = torch.nn.LSTM(3, 7)
    with torch.no_grad():
        net.weight_ih_l0.copy_(torch.from_numpy(w.reshape(28, 3)))
        net.weight_hh_l0.copy_(torch.from_numpy(u.reshape(28, 7)))
        net.bias_ih_l0.copy_(torch.from_numpy(b.reshape(28)))
        net.bias_hh_l0.zero_()
        wanted, (_, last) = net(torch.from_numpy(x))
    h, c = f(x, w, u, b)
    np.testing.assert_allclose(h, wanted.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c[-1], last[0].numpy(), rtol=1e-5, atol=1e-6)


LSTM = """def gates(float(N, I) x, float(N, H) h, float(4, H, I) W, float(4, H, H) U, float(4, H) b) -> (A) {
    G(g, n, o) +=! x(n, i) * W(g, o, i)
    R(g, n, o) +=! h(n, k) * U(g, o, k)
    A(g, n, o) = G(g, n, o) + R(g, n, o) + b(g, o)
}
def cell(float(N, I) x, float(N, H) h, float(N, H) c, float(4, H, I) W, float(4, H, H) U, float(4, H) b) -> (H1, C1) {
    A = gates(x, h, W, U, b)
    C1(n, o) = sigmoid(A(1, n, o)) * c(n, o) + sigmoid(A(0, n, o)) * tanh(A(2, n, o))
    H1(n, o) = sigmoid(A(3, n, o)) * tanh(C1(n, o))
}
def lstm(float(T, N, I) X, float(4, H, I) W, float(4, H, H) U, float(4, H) b) -> (h, c) {
    along t in 0:T {
        x(n, i) = X(t, n, i)
        h0(n, o) = (h(t-1, n, o) else 0) where n in 0:N, o in 0:H
        c0(n, o) = (c(t-1, n, o) else 0) where n in 0:N, o in 0:H
        H1, C1 = cell(x, h0, c0, W, U, b)
        h(t, n, o) = H1(n, o)
        c(t, n, o) = C1(n, o)
    }
}"""


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_cell_of_torch_is_a_def_that_a_block_calls(target):
    torch = pytest.importorskip("torch")
    x, w, u, b = drawn(5, (4, 2, 3), (4, 7, 3), (4, 7, 7), (4, 7))
    cell = torch.nn.LSTMCell(3, 7)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.from_numpy(w.reshape(28, 3)))
        cell.weight_hh.copy_(torch.from_numpy(u.reshape(28, 7)))
        cell.bias_ih.copy_(torch.from_numpy(b.reshape(28)))
        cell.bias_hh.zero_()
        state, wanted = None, []
        for each in torch.from_numpy(x):
            state = cell(each, state)
            wanted.append(state[0].numpy())
    h, c = tc.compile(LSTM, target=target).lstm(x, w, u, b)
    np.testing.assert_allclose(h, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c[-1], state[1].numpy(), rtol=1e-5, atol=1e-6)


CALLED = {
    "a view that starts elsewhere": (
        "def g(float(N) H) -> (Y) { Y(i) = H(i-1) + H(i+1) }",
        "Z = g(P)  h(t, i) = Z(i)",
        "Y(i) = P(i-1) + P(i+1)  h(t, i) = Y(i+1)",
    ),
    "a number of a step, with the name of the step in the def": (
        "def g(float(N) H, float a) -> (Y) { Y(t) = a * H(t) }",
        "s max=! P(i)  Z = g(P, s)  h(t, i) = Z(i)",
        "s max=! P(i)  h(t, i) = s * P(i)",
    ),
    "numbers in expressions": (
        "def g(float(N) H) -> (s) { s +=! H(i) * H(i) }",
        "h(t, i) = P(i) / (1 + g(P)) + g(P)",
        "s +=! P(i) * P(i)  h(t, i) = P(i) / (1 + s) + s",
    ),
    "what does not move": (
        "def g(float(N, M) W, float(M) H) -> (Y) { V(i, j) = 2 * W(i, j)  Y(i) +=! V(i, j) * H(j) }",
        "Z = g(X, P)  h(t, i) = 0.1 * Z(i)",
        "Y(i) +=! 2 * X(i, j) * P(j)  h(t, i) = 0.1 * Y(i)",
    ),
    "an order of its own": (
        "def g(float(N) H) -> (Y) { Y(i) = (Y(i-1) else 0) + H(i) along i }",
        "Z = g(P)  h(t, i) = 0.1 * Z(i)",
        "Y(i) = (Y(i-1) else 0) + P(i) along i  h(t, i) = 0.1 * Y(i)",
    ),
    "no circle": (
        "def g(float(N) H) -> (Y) { Y(i) = tanh(H(i)) }",
        "Q(i) = X(t, i)  Z = g(Q)  h(t, i) = Z(i)",
        "h(t, i) = tanh(X(t, i))",
    ),
}


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CALLED)
def test_a_call_inside_of_a_block_is_its_statements(name, target):
    head, called, written = CALLED[name]
    start = "" if "Q(i)" in called else "P(i) = 0.5*(h(t-1, 0) else 0) + X(t, i) where i in 0:N "
    texts = [
        f"{head} def f(float(T, N) X) -> (h) {{ along t in 0:T {{ {start} {body} }} }}" for body in (called, written)
    ]
    (x,) = drawn(6, (5, 5))
    found, wanted = (tc.compile(text, target=target, allow=["TC321", "TC322"]).f(x) for text in texts)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert found.shape == wanted.shape


def test_a_call_inside_of_a_block_is_told_before_its_statements():
    text = """def cell(float(N) H, float(N) W) -> (Y) { q(i) = W(i) * W(i)  Y(i) = H(i) * q(i) }
    def f(float(T, N) X, float(N) W) -> (h) { along t in 0:T {
        P(i) = (h(t-1, i) else 0) where i in 0:N  Z = cell(P, W)  V = cell(Z, W)  h(t, i) = V(i) + X(t, i) } }"""
    program = tc.compile(text).f.program
    names = [each.name for each in program.statements]
    assert names == ["cell.q", "cell#2.q", "P", "cell.Y", "Z", "cell#2.Y", "V", "h"]
    assert [names[each.position] for each in program.calls] == ["cell.Y", "cell#2.Y"]


def test_a_derivative_that_a_block_calls_is_known_by_the_name_of_its_def():
    known = dict(tc.compile("def square(float(N) H) -> (Y) { Y(i) = H(i) * H(i) }"))
    text = """def f(float(T, N) X) -> (h) { along t in 0:T {
        P(i) = (h(t-1, i) else 0) where i in 0:N  D(i) = X(t, i)  Y, Z = square.jvp(P, D)  h(t, i) = Y(i) + Z(i) + X(t, i) } }"""
    assert tc.compile(text, known=known).f.callees == known


def test_a_gpu_calls_at_every_step():
    x, w, u, b = drawn(5, (3, 1, 2), (4, 4, 2), (4, 4, 4), (4, 4))
    f = tc.compile(LSTM).lstm
    simulated = f.simulate(x, w, u, b)
    assert not simulated.findings
    np.testing.assert_allclose(simulated.outputs[0], f(x, w, u, b)[0], rtol=1e-4, atol=1e-5)


def test_what_needs_no_step_is_one_product_before_the_loop():
    f = tc.compile(RNN, target="cpu").rnn
    assert [statement.block != "" for statement in f.program.statements] == [False, True, True]
    loops = f.source("loops")
    assert loops.index("_Z(") < loops.index("_R(")
    assert "R[1, B, H]" in loops  # of a temporary of the loop, one step is kept


@pytest.mark.some(12)
@pytest.mark.parametrize("sizes", [(3, 1, 2, 5), (2, 5, 3, 17), (3, 13, 20, 70), (1, 64, 1, 1)])
@pytest.mark.parametrize("name", ["rnn", "double", "lstm"])
def test_products_in_steps_are_tiles_of_an_operand_that_is_packed_once(name, sizes):
    steps, batch, width, hidden = sizes
    text = {"rnn": RNN, "double": RNN.replace("float", "double"), "lstm": LSTM}[name]
    gates = (4,) if name == "lstm" else ()
    last = (4, hidden) if gates else (batch, hidden)
    args = drawn(0, (steps, batch, width), (*gates, hidden, width), (*gates, hidden, hidden), last)
    args = [each.astype(np.float64) for each in args] if name == "double" else args
    f, reference = (tc.compile(text, target=target)["lstm" if gates else "rnn"] for target in ("cpu", "interpreter"))
    found, wanted = (each if gates else (each,) for each in (f(*args), reference(*args)))
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    kernels = f.source("loops").split("kernel ")
    packed, loop = ([k for k, each in enumerate(kernels) if mark in each] for mark in ("U.cache(", "for t in"))
    assert packed
    assert max(packed) < max(loop)
    assert "U.cache[" in kernels[max(loop)]


SCHEDULES = [
    lambda s: s.split("R", "o", 4).reorder("R", "o.outer", "k", "o.inner"),
    lambda s: s.compute_at("Z", "R", "t"),
    lambda s: s.parallel("R", "b"),
    lambda s: s.split("h", "o", 8).vectorize("h", "o.inner"),
    lambda s: s.split("R", "b", 2).reorder("R", "b.outer", "t", "b.inner"),
    lambda s: s.split("R", "b", 2).reorder("R", "t", "b.inner", "b.outer"),
    lambda s: s.cache_write("R").split("R", "o", 4).compute_at("R.cache", "R", "o.outer"),
    lambda s: s.cache_read("U", "R").cache_read("h0", "R"),
    lambda s: s.cache_read("Z", "h"),
]
GROWTH = """def growth(float(T, N) X, float u) -> (U, V) { along t in 0:T {
    L(i) = (U(t-1, wrap(i+1)) else u) - (V(t-1, i) else 0) where i in 0:N
    R(i) = L(i) * X(t, i)
    U(t, i) = (U(t-1, i) else 1) + 0.5*R(i)
    V(t, i) = L(i) + R(i) - 0.25*U(t, i)
} }"""


def test_what_a_step_makes_for_itself_is_written_into_its_readers():
    (x,) = drawn(4, (7, 33))
    wanted = tc.compile(GROWTH, target="interpreter").growth(x, 0.5)
    f = tc.compile(GROWTH).growth
    assert "L[" not in f.source("loops")
    inlined = schedule_of(f.program, f.analysis.ranges).compute_inline("L").compute_inline("R")
    for found in (f(x, 0.5), f.with_schedule(inlined)(x, 0.5)):
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "P(t, i) = 2*(U(t-1, i) else 0) where i in 0:N  U(t, i) = X(t, i) + P(t, i) + (P(t-1, i) else 0)",
        "U(t, i) = X(t, i) + (P(t-1, i) else 0)  P(t, i) = 2*U(t, i)",
        "P(i) = 2*(U(t-1, i) else 0) where i in 0:N  U(t, i) = X(t, i) + P(i)  U(t, i) += P(i)",
        "U(t, i) = X(t, i) + (U(t-1, i) else 0)  P(i) = 2*U(t, i)  U(t, i) = U(t, i) + P(i)",
    ],
)
def test_what_another_step_reads_keeps_its_values(body):
    text = f"def f(float(T, N) X) -> (U) {{ along t in 0:T {{ {body} }} }}"
    (x,) = drawn(4, (6, 19))
    f, reference = (tc.compile(text, target=target).f for target in ("cpu", "interpreter"))
    np.testing.assert_allclose(f(x), reference(x), rtol=1e-5)


@pytest.mark.parametrize("change", SCHEDULES)
def test_schedules_inside_of_a_step(change):
    args = drawn(2, (4, 3, 5), (9, 5), (9, 9), (3, 9))
    f = tc.compile(RNN).rnn
    scheduled = f.with_schedule(change(schedule_of(f.program, f.analysis.ranges)))
    np.testing.assert_allclose(scheduled(*args), rnn_of(*args), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.compute_root("h"),
        lambda s: s.parallel("R", "t"),
        lambda s: s.reorder("R", "o", "t"),
        lambda s: s.compute_inline("R"),
        lambda s: s.rfactor("R", "k"),
        lambda s: s.cache_read("R", "h"),
        lambda s: s.cache_read("h", "R"),
        lambda s: s.cache_write("R").compute_root("R.cache"),
    ],
)
def test_schedules_that_break_the_order_are_refused(change):
    f = tc.compile(RNN).rnn
    with pytest.raises(tc.CompileError, match=r"TC40[17]"):
        change(schedule_of(f.program, f.analysis.ranges))


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_block_inside_of_a_block(target):
    f = tc.compile(
        """def f(float(M, N) S, float gap) -> (D) {
            along i in 0:M { along j in 0:N {
                side = max((D(i-1, j) else 0), (D(i, j-1) else 0)) - gap
                D(i, j) = max(side, (i > 0 && j > 0 ? D(i-1, j-1) : 0) + S(i, j))
            } }
        }""",
        target=target,
    ).f
    (s,) = drawn(4, (6, 7))
    wanted = np.zeros((7, 8))
    for i, j in itertools.product(range(6), range(7)):
        wanted[i, j] = max(max(wanted[i - 1, j], wanted[i, j - 1]) - 0.5, wanted[i - 1, j - 1] + s[i, j])
    np.testing.assert_allclose(f(s, 0.5), wanted[:6, :7], rtol=1e-5, atol=1e-5)


def test_gpu_threads_wait_for_each_other():
    text = """def f(float(T, N) X) -> (y, D, s) {
        along t in 0:T {
            S +=! (t > 0 ? y(t-1, j) : 1) * X(t, j)
            D(t, j) = S + 0.5*(D(t, j-1) else 0) + 0.5*(D(t-1, j) else 0) where j in 0:N along j
            y(t, j) = X(t, j) + 0.1*D(t, wrap(j+1))
            s(t) = S
        }
    }"""
    (x,) = drawn(3, (3, 70))
    f = tc.compile(text).f
    assert "__syncthreads" in f.source("cuda")
    simulated = f.simulate(x)
    assert not simulated.findings
    for mine, theirs in zip(simulated.outputs, tc.compile(text, target="interpreter").f(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


# every order ---------------------------------------------------------------------------------------------------------------------


class Steps:
    """A block of statements that read each other at drawn distances."""

    def __init__(self, seed):
        random = Random(seed)
        self.way, self.first = random.choice((1, -1)), random.choice((0, 1))
        self.names = ["A", "B", "C"][: random.randint(2, 3)]
        self.reads = {
            name: [
                (
                    random.choice(self.names),
                    random.choice((-2, -1, -1, 0, 1)) * random.choice((1, self.way)),
                    random.choice((-1, 0, 0, 1)),
                )
                for _ in range(random.randint(1, 2))
            ]
            for name in self.names
        }

    @property
    def text(self):
        lines = []
        for name in self.names:
            terms = [
                f"({other}(t + {step}, i + {by}) else 1)".replace("+ -", "- ") for other, step, by in self.reads[name]
            ]
            lines.append(f"{name}(t, i) = {' + '.join(terms)} + X(t, i) where i in 0:N")
        sign = "-" if self.way < 0 else ""
        return f"def f(int32(T, N) X) -> ({', '.join(self.names)}) {{ along {sign}t in {self.first}:T {{ {'  '.join(lines)} }} }}"

    def run(self, x):
        """The values; `None` where an element is read before it is made."""
        steps, width = x.shape
        made = {name: {} for name in self.names}
        for t in range(self.first, steps)[:: self.way]:
            for name in self.names:
                new = {}
                for i in range(width):
                    total = int(x[t, i])
                    for other, step, by in self.reads[name]:
                        at = (t + step, i + by)
                        inside = self.first <= at[0] < steps and 0 <= at[1] < width
                        if inside and at not in made[other]:
                            return None
                        total += made[other][at] if inside else 1
                    new[t, i] = total
                made[name] |= new
        return {
            name: [[made[name][t, i] for i in range(width)] for t in range(self.first, steps)] for name in self.names
        }


def check_order(seed):
    block = Steps(seed)
    legal = all(
        block.run(np.ones(shape, np.int64)) is not None
        for shape in itertools.product(range(block.first + 1, 6), range(1, 5))
    )
    found = tc.analyze(block.text)
    codes = {each.code.number for each in found.diagnostics if each.is_error}
    assert codes in ([set()] if legal else [{"TC260"}, {"TC211"}, {"TC211", "TC260"}]), (
        f"{block.text}\n{[each.message for each in found.diagnostics]}"
    )
    if legal:
        x = np.random.default_rng(seed).integers(-9, 9, (5, 6)).astype(np.int32)
        for target in ("interpreter", "cpu"):
            got = tc.compile(block.text, target=target).f(x)
            for mine, name in zip(got, block.names, strict=True):
                assert mine.tolist() == block.run(x)[name], block.text
    return legal


def test_an_order_is_accepted_where_it_is_one():
    found = [check_order(seed) for seed in range(16)]
    assert 2 <= sum(found) <= 14


@pytest.mark.slow
def test_an_order_is_accepted_where_it_is_one_many():
    found = [check_order(seed) for seed in range(100, 340)]
    assert 30 <= sum(found) <= 210


def test_drawn_blocks():
    found = [judge(*drawn_blocks(seed)) for seed in range(8)]
    assert sum(each.startswith("computed") for each in found) >= 3


@pytest.mark.slow
def test_drawn_blocks_many():
    found = [judge(*drawn_blocks(seed)) for seed in range(100, 140)]
    assert sum(each.startswith("computed") for each in found) >= 20


def test_a_running_sum_in_a_block_stays_in_its_steps():
    """What it reads of the step before was written into it; then it was bound to the threads of a GPU, out of its order."""
    text = """def f(float(T) X, float(T) s) -> (b, c) {
        along t in 0:T {
            q = (t > 0 ? b(t - 1) : 0)
            b(t) = q + s(t)
            c(t) = (c(t - 1) else 1) * b(t) + X(t)
        }
    }"""
    f = tc.compile(text, target="cpu").f
    x, s = np.random.default_rng(4).integers(0, 3, (2, 7)).astype(np.float32)
    b, c = f(x, s)
    simulated = f.simulate(x, s)
    assert simulated.findings == ()
    for found, expected in zip(simulated.outputs, (b, c), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(b, np.add.accumulate(s))
