"""Report while a process that reads messages compiles kernels, which can take a minute."""

# pyright: basic
# Reason: Numba has no types.

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from mqlake.dispatch.kernel import is_compiled
from mqlake.kernels.first_use import tell_first_use
from mqlake.pace import noted

KIND = "numba:compile"
"""Numba's name of the events at the begin and the end of a compilation."""

_OURS = "mqlake."

_installing = threading.Lock()
_installed: list[Any] = []


def tell_compilation(tell: Callable[[str], object]) -> None:
    """Let `tell` get a line at the first use of an empty cache (`tell_first_use`), and one every
    1.5 s while this process compiles a kernel of mqlake.

    The first caller of a process gets the latter. Loading kernels from the cache is not reported.
    """
    tell_first_use(tell)
    if not is_compiled():
        return
    from numba.core import event

    with _installing:
        if not _installed:
            _installed.append(listener_for(CompilationReports(tell)))
            event.register(KIND, _installed[0])


class CompilationReports:
    """Reports, from a thread, the kernel that is being compiled.

    Compiling a kernel compiles the functions that it calls, which are not reported.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._changing = threading.Lock()
        self._depth = self._count = 0
        self._noting = ExitStack()

    def begin(self, name: str) -> None:
        """Note that the compiler has begun with a function."""
        with self._changing:
            self._depth += 1
            if self._depth > 1:
                return
            self._count += 1
            what = f"compiling kernel {self._count} ({name}), once"
            self._noting.enter_context(
                noted(lambda seconds: self._tell(f"{what}: {seconds:.0f} s"))
            )

    def end(self) -> None:
        """Note that the compiler has finished a function."""
        with self._changing:
            if self._depth == 0:  # It had begun before anybody listened.
                return
            self._depth -= 1
            if self._depth == 0:
                self._noting.close()


def listener_for(reports: CompilationReports) -> Any:
    """Return a listener of Numba's compiler that reports kernels of mqlake, not those of users."""
    from numba.core import event

    class CompilerListener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith(_OURS):
                reports.begin(function.__name__)

        def on_end(self, event: Any) -> None:
            if event.data["dispatcher"].py_func.__module__.startswith(_OURS):
                reports.end()

    return CompilerListener()
