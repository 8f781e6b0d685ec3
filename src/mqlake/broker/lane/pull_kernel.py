"""Load the kernel of pulls, compiled if it is not in the cache, before it is needed.

`python -m mqlake.broker.lane.pull_kernel` fills the cache once, at set-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mqlake.broker.lane.compiled.pull import enter_decision, read_key, serve_pulls
from mqlake.broker.lane.pull_tables import PullTables
from mqlake.broker.lane.user_table import UserTable
from mqlake.dispatch.batch import Bytes
from mqlake.kernels import jit
from mqlake.kernels.entry_point import entry_point_for

KERNELS: Final = (serve_pulls, read_key, enter_decision)


class PullKernel:
    """The kernel of pulls, with the tables that it reads.

    Attributes:
        tables: decisions, topics and queues.
        serve: answers pulls: see `serve_pulls`. Its arguments are the data and the answers.
    """

    def __init__(self, tables: PullTables, data: Bytes, answers: Bytes) -> None:
        self.tables = tables
        self._serve: Callable[..., int] = entry_point_for(serve_pulls, tables.arrays, data, answers)

    def serve(self, data: Bytes, answers: Bytes) -> int:
        """Answer pulls: see `serve_pulls`."""
        return self._serve(self.tables.arrays, data, answers)

    def read(self, header: bytes, kind: int) -> int:
        """Read a header; return the size of its key, -1 if it is not typical."""
        arrays = self.tables.arrays
        data = np.array(np.frombuffer(header, np.uint8))
        return int(read_key(data, 0, len(data), kind, arrays.key, arrays.places, arrays.numbers))

    def enter(self, size: int, number: int) -> None:
        """Enter the decision with a number on the key that was read."""
        enter_decision(self.tables.arrays, size, number)


def load_pulls(tables: PullTables, data: Bytes, answers: Bytes) -> PullKernel:
    """Return the kernel; another process compiles it if possible."""
    jit.compile_elsewhere(KERNELS, __spec__.name)
    kernel = PullKernel(tables, data, answers)
    _call_each(kernel, data, answers)
    return kernel


def _call_each(kernel: PullKernel, data: Bytes, answers: Bytes) -> None:
    """Call each kernel once, without a frame; compile those that are not in the cache."""
    kernel.serve(data, answers)
    size: Any = kernel.read(b"", 0)
    assert size < 0
    kernel.tables.arrays.key[:] = 0
    kernel.enter(0, 0)
    kernel.tables.clear()


def call_each() -> None:
    """Fill the cache of kernels."""
    segments = np.zeros((1, 3), np.int64)
    nothing: Bytes = np.zeros(1, np.uint8)
    load = PullKernel(PullTables(segments, UserTable()), nothing, nothing)
    _call_each(load, nothing, nothing)


if __name__ == "__main__":
    call_each()
