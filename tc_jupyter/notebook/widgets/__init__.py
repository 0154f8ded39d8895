"""The views: one `.py` (what is shown, as data and static HTML) and one `.js` (what the pointer and the keys do) per widget.

Comes in: a `Function`. Goes out: a `Picture` (no Jupyter: values of controls in, `Content` out), and `live`, which puts a picture
into a widget when a kernel runs. The static HTML of a saved notebook and the live view are the same `Content`.
"""
