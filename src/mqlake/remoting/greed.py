"""How greedy a connection is: what it holds, times how long that has stood still, cubed."""

from __future__ import annotations

from typing import Final

REQUEST: Final = 2048
"""Bytes that a request takes while it waits for its answer, its body aside."""
_LONG: Final = 10.0
"""Seconds after which holding on makes nobody greedier."""
_MUCH_ASKED: Final = 1 << 20
"""Bytes of requests that wait for their answer up to which nobody is greedy."""
_MOMENT: Final = 0.01
"""Seconds that everything counts as held at least."""
_IN_FLIGHT: Final = 1.0
"""Seconds for which requests that wait for their answer count as held: it is not theirs to say."""


def greed_of_requests(size: int, grace: float) -> float:
    """Return the greed of requests of so many bytes that wait for their answers."""
    greed = size * _IN_FLIGHT**3
    return 0.0 if grace and greed < _MUCH_ASKED else greed


def greed_of(size: int, since: float, now: float, grace: float) -> float:
    """Return the greed of bytes that have stood still since a loop time.

    Args:
        grace: seconds for which standing still does not count.
    """
    age = now - since
    return 0.0 if age < grace else size * (min(age, _LONG) + _MOMENT) ** 3
