"""How many topics, or groups, each address and each user may create."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from typing import NamedTuple

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.slices import Job

SignerOf = Callable[[str], str | None]
"""Returns the user that signs over the connection from "host:port"; None for an unknown one."""
Refuse = Callable[[str, str], RemotingError]
"""Counts a refusal by its reason, and returns the answer with a text."""


class CreationLimits(NamedTuple):
    """What is limited: how many of one kind one address, and one user, may create.

    Attributes:
        kind: such as "Topics", as in the names of the settings.
        reason: under which refusals are counted.
        of: returns the limits of an address and of a user; 0 for no limit.
    """

    kind: str
    reason: str
    of: Callable[[BrokerSettings], tuple[int, int]]


def _topics(settings: BrokerSettings) -> tuple[int, int]:
    return settings.max_topics_per_address, settings.max_topics_per_user


def _groups(settings: BrokerSettings) -> tuple[int, int]:
    return settings.max_groups_per_address, settings.max_groups_per_user


TOPICS = CreationLimits(
    "Topics",
    "TOPIC_QUOTA",
    _topics,
)
GROUPS = CreationLimits(
    "Groups",
    "GROUP_QUOTA",
    _groups,
)


class Creators:
    """Counts what clients have created by sending or consuming since the start of the broker.

    The limits of an address and a user, and the share of a client in a table that is half full
    (`Shares`), are kept by these counts.
    """

    def __init__(
        self,
        limits: CreationLimits,
        settings: Callable[[], BrokerSettings],
        signer_of: SignerOf,
        refuse: Refuse,
    ) -> None:
        self._limits, self._settings = limits, settings
        self._signer_of, self._refuse = signer_of, refuse
        self._shares = Shares(lambda: settings().max_address_share)
        self._users = Counter[str]()
        self._of: dict[str, tuple[str, str | None]] = {}

    def check(self, client: str) -> None:
        """Refuse a creation that is one too many for the address or the user of a client.

        Args:
            client: its "host:port".

        Raises:
            RemotingError: a limit is reached; it is named.
        """
        address, user = owner_of(client), self._signer_of(client)
        of_address, of_user = self._limits.of(self._settings())
        if of_address and self._shares.of(address) >= of_address:
            raise self._refused(address, of_address, "Address")
        if user is not None and of_user and self._users[user] >= of_user:
            raise self._refused(f"user {user}", of_user, "User")

    def refusal(self, client: str, used: int, most: int, setting: str) -> str | None:
        """Return why a client may not add to a table of this kind (`Shares.refusal`)."""
        return self._shares.refusal(owner_of(client), used, most, setting)

    def creator(self, name: str) -> str | None:
        """Return to whom something counts that a client has created."""
        found = self._of.get(name)
        return None if found is None else found[0]

    def add(self, name: str, client: str) -> None:
        """Count what a client has created."""
        self.remove(name)
        address, user = owner_of(client), self._signer_of(client)
        self._of[name] = address, user
        self._shares.add(address)
        if user is not None:
            self._users[user] += 1

    def remove(self, name: str) -> None:
        """Count something no longer, which was deleted."""
        if (found := self._of.pop(name, None)) is not None:
            address, user = found
            self._shares.add(address, -1)
            if user is not None:
                self._users[user] -= 1
                if not self._users[user]:
                    del self._users[user]

    def keep(self, names: Container[str]) -> Job[None]:
        """Stop counting all except these names: a master's table has replaced this broker's."""
        for name in list(self._of):
            if name not in names:
                self.remove(name)
            yield

    def _refused(self, owner: str, most: int, what: str) -> RemotingError:
        kind = self._limits.kind
        why = f"{owner} may create {most} {kind.lower()} (max{kind}Per{what})"
        return self._refuse(self._limits.reason, why)
