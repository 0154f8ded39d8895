"""tc_jupyter in marimo: `marimo edit examples/in_marimo.py`, or `python examples/in_marimo.py`."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tc_jupyter as tc

    mo.md(
        """
        # Index notation in marimo

        A cell of marimo is Python, so that the defs stand in a text; `tc.compile` makes functions of it. The value of a cell that ends
        with the module is its card. Move a size, and the picture follows; change the text, and marimo runs what depends on it.
        """
    )
    return mo, np, tc


@app.cell
def _(tc):
    module = tc.compile("""
        def conv(float(N) X, float(K) W) -> (Y) { Y(i) +=! X(i + k) * W(k) }
        def smooth(float(N) X) -> (Y) { Y(i) = (X(i) + X(i + 1) + X(i + 2)) / 3 }
    """)
    module
    return (module,)


@app.cell
def _(mo):
    taps = mo.ui.slider(1, 9, value=3, label="taps")
    taps
    return (taps,)


@app.cell
def _(mo, module, np, taps):
    signal = np.sin(np.linspace(0, 6, 50)).astype(np.float32)
    window = np.full(taps.value, 1 / taps.value, np.float32)
    smoothed = module.conv(signal, window)
    mo.md(f"{len(signal)} values and {taps.value} taps give {len(smoothed)} values: N - K + 1.")
    return (smoothed,)


@app.cell
def _(module, tc, taps):
    tc.view(module.conv, "iteration_space", N=12, K=taps.value)
    return


if __name__ == "__main__":
    app.run()
