"""The shares of clients in a table that has a limit.

Nobody's additions are restricted while at most half of the table is in use. Beyond that, a client
may add entries only until it has its share, so the rest remains for others.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

_HUNDRED: Final = 100
_NETWORK: Final = (1 << 64) - 1
"""The bits of an IPv6 address that one client may choose by itself."""


def owner_of(address: str) -> str:
    """Return to whom entries of a connection count, from its "host:port".

    It is the host's address; of IPv6, its /64 network. Whoever authenticates clients can return
    the name of a user here.
    """
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    if ":" not in host:
        return host
    found = ip_address(host)
    assert isinstance(found, IPv6Address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) & ~_NETWORK)}/64"


class Use(NamedTuple):
    """How much of a table is in use.

    Attributes:
        used: the entries of the table.
        most: the limit of the table.
        setting: its name.
    """

    used: int
    most: int
    setting: str

    def is_free(self, more: int = 1) -> bool:
        """Return whether anybody may add entries."""
        return 2 * (self.used + more) <= self.most

    def refusal(self, owner: str, own: int, percent: int, more: int = 1) -> str | None:
        """Return why a client may not add entries; None if it may.

        Args:
            own: the entries that the client has.
            percent: the share of one client, in percent of the limit (`maxAddressShare`).
            more: the entries that it adds.
        """
        used, most, setting = self
        if used + more > most:
            return f"there are {used} already, and the maximum is {most} ({setting})"
        share = max(1, most * percent // _HUNDRED)
        if self.is_free(more) or own + more <= share:
            return None
        return (
            f"{owner} has {own} of {used}; while more than half of {most} ({setting}) are in use, "
            f"one client may have {share} (maxAddressShare)"
        )


class Shares:
    """How many entries of one table each client has added.

    Args:
        percent: returns the share of one client, in percent of the limit (`maxAddressShare`).
    """

    def __init__(self, percent: Callable[[], int]) -> None:
        self._percent = percent
        self._own: dict[str, int] = {}

    def of(self, owner: str) -> int:
        """Return how many entries a client has."""
        return self._own.get(owner, 0)

    def add(self, owner: str, count: int = 1) -> None:
        """Count entries that a client has added, or that are gone (a negative number)."""
        now = self._own.get(owner, 0) + count
        if now > 0:
            self._own[owner] = now
        else:
            self._own.pop(owner, None)

    def shrink(self, used: int) -> None:
        """Count down, each client in proportion, to as many entries as the table has.

        For tables whose entries are removed without notice of whose they were.
        """
        total = sum(self._own.values())
        if total > used:
            shrunk = {owner: own * used // total for owner, own in self._own.items()}
            self._own = {owner: own for owner, own in shrunk.items() if own}

    def refusal(self, owner: str, used: int, most: int, setting: str, more: int = 1) -> str | None:
        """Return why a client may not add entries to the table (`Use.refusal`); None if it may."""
        own = min(self.of(owner), used)  # Entries may have been removed without notice.
        return Use(used, most, setting).refusal(owner, own, self._percent(), more)
