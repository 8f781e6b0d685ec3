"""How greedy a connection is: the bytes that it holds, times the cube of how long they have not
moved.
"""

from __future__ import annotations

from typing import Final

REQUEST: Final = 2048
"""Bytes that a waiting request holds, without its body."""
_LONG: Final = 10.0
"""Seconds after which holding longer makes no connection greedier."""
_MUCH_ASKED: Final = 1 << 20
"""Bytes of waiting requests up to which no connection is greedy."""
_MOMENT: Final = 0.01
"""Minimum seconds for which everything counts as held."""
_IN_FLIGHT: Final = 1.0
"""Seconds for which waiting requests count as held: the client does not control that."""


def greed_of_requests(size: int, grace: float) -> float:
    """Return the greed of so many bytes of requests that wait for their answers."""
    greed = size * _IN_FLIGHT**3
    return 0.0 if grace and greed < _MUCH_ASKED else greed


def greed_of(size: int, since: float, now: float, grace: float) -> float:
    """Return the greed of bytes that have not moved since a loop time.

    Args:
        grace: seconds of not moving that do not count.
    """
    age = now - since
    return 0.0 if age < grace else size * (min(age, _LONG) + _MOMENT) ** 3
