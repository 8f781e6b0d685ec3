"""Refuse to use, in a forked child, what its parent opened for writing.

A child inherits memory, mappings and descriptors, but none of the other threads, and its parent
continues to write the same files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakSet

from mqlake.errors import MqlakeError, StoreError


class ForkGuard:
    """Raises if something is used in a process that was forked after it was opened.

    The system makes one call in each child, so that no check has to look up the process id.

    Args:
        what: the file or directory, for messages.
        kind: what was opened, for messages.
        error: the error to raise.
        in_child: called in each child before `os.fork` returns there, while no other thread runs.
            It must wait for no lock: the thread that held it does not exist in the child.

    Attributes:
        is_child: whether this process is a child of the process that opened it.
    """

    def __init__(
        self,
        what: object,
        in_child: Callable[[], object] | None = None,
        *,
        kind: str = "store",
        error: type[MqlakeError] = StoreError,
    ) -> None:
        self._what, self._in_child = what, in_child
        self._kind, self._error = kind, error
        self._process = os.getpid()
        self.is_child = False
        _guards.add(self)

    @property
    def reason(self) -> str:
        """Why it must not be used in a child."""
        return (
            f"this {self._kind} was opened by process {self._process}; open it again in this "
            "process"
        )

    def check(self) -> None:
        """Raise in a child of the process that opened it; do nothing elsewhere.

        Raises:
            MqlakeError: this process is such a child.
        """
        if self.is_child:
            raise self._error(f"{self._what}: {self.reason}")

    def enter_child(self) -> None:
        """Note that this process is a child."""
        if not self.is_child:
            self.is_child = True
            if self._in_child is not None:
                self._in_child()


_guards: WeakSet[ForkGuard] = WeakSet()


def _enter_child() -> None:
    for guard in list(_guards):
        guard.enter_child()


os.register_at_fork(after_in_child=_enter_child)
