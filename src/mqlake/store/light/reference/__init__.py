"""The kernels of light queues in plain Python (twin of `mqlake.store.light.compiled`)."""

from mqlake.store.light.reference.entries import append, collect, move
from mqlake.store.light.reference.find import find

__all__ = ["append", "collect", "find", "move"]
