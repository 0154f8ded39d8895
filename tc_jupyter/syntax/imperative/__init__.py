"""Functions with loops, as C, CUDA, Python and Numba have them, as defs.

Text -> tree (`of_c.py`, `of_python.py`) -> assignments, each with its loops and conditions (`leaves.py`) -> steps over ranges
(`steps.py`, `shapes.py`, `order.py`) -> a def (`translate.py`), or why there is none that computes the same.

Worked example: `void twice(float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }` is
`def twice(float(n) x) -> (y) { y(i) = 2 * x(i) }`.
"""
