"""Default schedules on a GPU, one file per class of loop nest; `schedule.space` has their order."""

from . import folds, pointwise, product, reduction, rows, scatter, stencils, tensor_cores, thin, transposing

__all__ = [
    "folds",
    "pointwise",
    "product",
    "reduction",
    "rows",
    "scatter",
    "stencils",
    "tensor_cores",
    "thin",
    "transposing",
]
