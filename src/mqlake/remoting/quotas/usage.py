"""What one owner uses."""

from __future__ import annotations

from typing import Final

from mqlake.remoting.quotas.quota import (
    BYTES,
    CONNECTIONS,
    IN_FLIGHT,
    REQUESTS,
    Excess,
    Quota,
    QuotaKind,
    excess,
)


class Rate:
    """A rate: a bucket that leaks as much in a second as is allowed, and holds just as much.

    What is added may exceed it, because a request or an answer is counted once its size is known.
    Then nothing is allowed until the excess has leaked.
    """

    __slots__ = ("_at", "_level")

    def __init__(self, now: float) -> None:
        self._level, self._at = 0.0, now

    def add(self, amount: float) -> None:
        """Count what was used."""
        self._level += amount

    def is_exceeded(self, allowed: int, now: float) -> bool:
        """Return whether more than is allowed in a second was used."""
        return self._leaked(allowed, now) >= allowed

    def seconds(self, allowed: int, now: float) -> float:
        """Return in how many seconds nothing counts any more."""
        return self._leaked(allowed, now) / allowed

    def _leaked(self, allowed: int, now: float) -> float:
        self._level = max(0.0, self._level - allowed * (now - self._at))
        self._at = now
        return self._level


MOST_REFUSALS: Final = 200
"""Requests of one owner that are refused in a second without delay. To refuse one takes about as
long as to serve it.
"""


class Usage:
    """What one owner uses. `Peer` counts into it.

    Attributes:
        connections: its open connections.
        in_flight: its requests that wait for their answer.
        requests, size: its requests and bytes in a second.
    """

    __slots__ = ("_refusals", "connections", "in_flight", "kind", "owner", "requests", "size")

    def __init__(self, kind: QuotaKind, owner: str, now: float) -> None:
        self.kind, self.owner = kind, owner
        self.connections = self.in_flight = 0
        self.begin(now)

    def begin(self, now: float) -> None:
        """Count rates from now on: what was added while they had no limit has not leaked."""
        self.requests, self.size, self._refusals = Rate(now), Rate(now), Rate(now)

    def too_many_connections(self, quota: Quota) -> Excess | None:
        """Return the limit of connections, if it is exceeded."""
        most = quota.connections
        if not most or self.connections <= most:
            return None
        used = f"may have {most} connections"
        return excess(CONNECTIONS, self._name, used, f"maxConnectionsPer{self.kind.value}")

    def excess(self, quota: Quota, now: float) -> Excess | None:
        """Return the limit that a request exceeds, which is already counted as waiting."""
        kind = self.kind.value
        if quota.in_flight and self.in_flight > quota.in_flight:
            used = f"may have {quota.in_flight} requests that wait for their answer"
            return excess(IN_FLIGHT, self._name, used, f"maxInFlightPer{kind}")
        if quota.requests and self.requests.is_exceeded(quota.requests, now):
            used = f"may make {quota.requests} requests a second"
            return excess(REQUESTS, self._name, used, f"maxRequestRatePer{kind}")
        if quota.size and self.size.is_exceeded(quota.size, now):
            used = f"may send and receive {quota.size} bytes a second"
            return excess(BYTES, self._name, used, f"maxByteRatePer{kind}")
        return None

    def note_refusal(self, now: float) -> bool:
        """Count a request that was refused; return whether there are too many."""
        self._refusals.add(1)
        return self._refusals.is_exceeded(MOST_REFUSALS, now)

    def settled_in(self, quota: Quota, now: float) -> float:
        """Return in how many seconds it is as if the owner had used nothing."""
        rates = (self.requests, quota.requests), (self.size, quota.size)
        return max((rate.seconds(most, now) for rate, most in rates if most), default=0.0)

    @property
    def _name(self) -> str:
        return self.owner if self.kind is QuotaKind.ADDRESS else f"user {self.owner}"
