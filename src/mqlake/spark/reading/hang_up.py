"""Let a Python worker end quietly when Spark needs no more of its rows.

After a `limit`, Spark closes the connection to the worker, whose next write fails with
`BrokenPipeError`. PySpark's daemon prints that as a traceback, though nothing is wrong.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType
from typing import Any

_DAEMONS = ("__main__", "pyspark.daemon")
"""Modules whose `manager` may have forked this process."""


def expect_hang_up() -> None:
    """Keep the daemon's code in this process from printing `BrokenPipeError`.

    That code runs after the task, only in the forked worker: the daemon itself is not changed. In
    other processes, this does nothing.
    """
    for name in _DAEMONS:
        module: Any = sys.modules.get(name)
        if hasattr(module, "manager") and getattr(module, "traceback", None) is traceback:
            module.traceback = _quiet()


def _quiet() -> ModuleType:
    """Return a module `traceback` whose `print_exc` ignores closed connections."""
    quiet: Any = ModuleType(traceback.__name__)
    quiet.__dict__.update(vars(traceback))

    def print_exc(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
            traceback.print_exc(*arguments, **named)

    quiet.print_exc = print_exc
    return quiet
