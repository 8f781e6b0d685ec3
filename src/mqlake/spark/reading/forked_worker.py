"""What PySpark's daemon does in a worker that it has forked, after each task.

After a `limit`, Spark closes the connection to the worker, whose next write fails with
`BrokenPipeError`. The daemon prints that as a traceback, though nothing is wrong. And it collects
garbage after each task, which looks at every object of Numba, pyarrow and pandas.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

_DAEMONS = ("__main__", "pyspark.daemon")
"""Where a daemon's `manager` may be."""


def expect_hang_up() -> None:
    """Keep the daemon's code in this process from printing `BrokenPipeError`.

    That code runs after the task, only in the forked worker: the daemon itself is not changed. In
    other processes, this does nothing.
    """
    for module in _daemons():
        if getattr(module, "traceback", None) is traceback:
            module.traceback = _quiet()


@cache
def spare_collections() -> None:
    """Take all objects of this process from the garbage collector, once in a forked worker.

    A worker serves many tasks. Without this, the collection after each one, also after each plan,
    takes 70 ms of processor time.
    """
    if any(_daemons()):
        gc.collect()
        gc.freeze()


def _daemons() -> Iterator[Any]:
    """Yield the modules whose `manager` may have forked this process."""
    for name in _DAEMONS:
        module: Any = sys.modules.get(name)
        if hasattr(module, "manager"):
            yield module


def _quiet() -> ModuleType:
    """Return a module `traceback` whose `print_exc` ignores closed connections."""
    quiet: Any = ModuleType(traceback.__name__)
    quiet.__dict__.update(vars(traceback))

    def print_exc(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
            traceback.print_exc(*arguments, **named)

    quiet.print_exc = print_exc
    return quiet
