"""What a group of consumers has received, and what must be true of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection


class ReceivedBodies:
    """The bodies of messages that were delivered to a group; a body is a name and a number.

    Attributes:
        count: how many deliveries there were.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._deliveries: list[tuple[float, str]] = []

    @property
    def count(self) -> int:
        return len(self._deliveries)

    def add(self, at: float, body: str) -> None:
        """Note a delivery.

        Args:
            at: when it was, by the clock of the clients' process.
        """
        self._seen.add(body)
        self._deliveries.append((at, body))

    def has_any(self, bodies: Collection[str]) -> bool:
        """Return whether one of these was delivered."""
        return not self._seen.isdisjoint(bodies)

    def lost(self, acknowledged: Collection[str]) -> set[str]:
        """Return the acknowledged messages that were not delivered."""
        return set(acknowledged) - self._seen

    @property
    def repeated(self) -> int:
        """Return how many deliveries repeat another one."""
        return self.count - len(self._seen)

    def out_of_order(self) -> list[str]:
        """Return what was delivered for the first time after a later one of its name, or after a
        gap.
        """
        numbers: dict[str, dict[int, None]] = defaultdict(dict)
        for _, body in sorted(self._deliveries, key=lambda each: each[0]):
            name, _, number = body.rpartition(" ")
            numbers[name][int(number)] = None
        return [
            f"{name} {number}, where {expected} follows"
            for name, found in numbers.items()
            for expected, number in enumerate(found)
            if number != expected
        ]
