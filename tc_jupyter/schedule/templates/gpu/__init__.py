"""Default schedules on a GPU, one file per class of loop nest; `choose.for_gpu` asks them in order."""

from .choose import for_gpu

__all__ = ["for_gpu"]
