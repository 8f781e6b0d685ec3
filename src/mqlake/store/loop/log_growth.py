"""Notify whoever copies a live store's log that it may have grown."""

from __future__ import annotations

from collections.abc import Callable


class LogGrowth:
    """The one that copies the log of a store to slaves, if any. For the tasks of its event loop."""

    def __init__(self) -> None:
        self._listener: Callable[[], object] | None = None

    def listen(self, listener: Callable[[], object]) -> None:
        """Call a function, and no other, in the same round of the loop in which the log grows."""
        self._listener = listener

    def stop(self) -> None:
        """Stop calling the function."""
        self._listener = None

    def tell(self) -> None:
        """Note that the log may have grown."""
        if self._listener is not None:
            self._listener()
