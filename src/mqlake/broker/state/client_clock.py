"""The time as clients state it in their requests."""

from __future__ import annotations

from collections.abc import Callable


class ClientClock:
    """The clock of clients, by which a broker measures how old a request is.

    Args:
        milliseconds: returns the time (ms since 1970).
    """

    def __init__(self, milliseconds: Callable[[], int]) -> None:
        self._milliseconds = milliseconds

    def time_left(self, poll_time: int, born_time: int) -> int:
        """Return how long (ms) a request may still wait; below 0 if its time is over.

        Args:
            poll_time: how long (ms) the client waits.
            born_time: when it sent the request, by its own clock; 0 if it does not say.
        """
        return poll_time - (self._milliseconds() - born_time if born_time else 0)
