"""Choose whether compiled kernels or their readable twin in plain Python walk over a log.

Both return the same. MQLAKE_KERNEL=compiled|reference decides. Without it, plain Python is used for
logs that it finishes before the kernels would be loaded.
"""

from __future__ import annotations

import sys

from mqlake.kafka.batches.walk import BatchWalk
from mqlake.kernels.choice import chosen
from mqlake.storage.protocol import ReadableFile

_KERNELS = "mqlake.kafka.compiled.batches"

# Seconds, measured: to load Numba and the kernels and, when the process ends, to release them; a
# batch in plain Python.
_LOADING = 0.6
_BATCH = 8e-6
_SAMPLE = 32


class _Spent:
    seconds = 0.0


def is_compiled(file: ReadableFile, start: int = 0) -> bool:
    """Return whether compiled kernels are to go over a log from a position on.

    Estimated by its first batches; what plain Python has gone over before counts, too, so that many
    small logs are as good a reason as a large one.

    Raises:
        MqlakeError: MQLAKE_KERNEL names no kernels.
    """
    if (twin := chosen()) is not None:
        return twin == "compiled"
    if _KERNELS in sys.modules:
        return True
    walk = BatchWalk(file, start)
    count = sum(1 for _ in zip(range(_SAMPLE), walk, strict=False))
    if not count:
        return False
    mean = (walk.position - start) / count
    _Spent.seconds += (file.size - start) / mean * _BATCH
    return _Spent.seconds > _LOADING
