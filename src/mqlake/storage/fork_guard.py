"""What one process has opened for writing is not a forked child's to use.

A child inherits memory, mappings and descriptors, but none of the other threads, and its parent
goes on writing the same files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakSet

from mqlake.errors import StoreError


class ForkGuard:
    """Refuse to use something in a process that was forked since it was opened.

    The system calls once in the child: nothing has to ask for the process id.

    Args:
        what: the file or directory that messages name.
        in_child: called in each child, before `os.fork` returns there, and beside no other thread.
            It must wait for no lock: the thread that held it does not exist in the child.

    Attributes:
        is_child: whether this process is a child of the one that opened it.
    """

    def __init__(self, what: object, in_child: Callable[[], object] | None = None) -> None:
        self._what, self._in_child = what, in_child
        self._process = os.getpid()
        self.is_child = False
        _guards.add(self)

    @property
    def reason(self) -> str:
        """Why it is not to be used in a child."""
        return f"this store was opened by process {self._process}; open it again in this process"

    def check(self) -> None:
        """Do nothing in the process that opened it.

        Raises:
            StoreError: this process is a child of that one.
        """
        if self.is_child:
            raise StoreError(f"{self._what}: {self.reason}")

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
