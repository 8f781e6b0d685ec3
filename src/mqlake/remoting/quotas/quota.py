"""The limits of one owner, an address or a user, and the names of their settings."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class QuotaKind(Enum):
    """Whose use is counted."""

    ADDRESS = "Address"
    USER = "User"


class Quota(NamedTuple):
    """What one owner may use; 0 for no limit.

    Attributes:
        connections: its open connections; those of a user are those over which it has signed last.
        requests: its requests in a second.
        size: bytes in a second: of the bodies of its requests, and of what is written to it.
        in_flight: its requests that wait for their answer.
    """

    connections: int = 0
    requests: int = 0
    size: int = 0
    in_flight: int = 0

    @property
    def is_on(self) -> bool:
        """Return whether there is any limit."""
        return any(self)


class Excess(NamedTuple):
    """A limit that is exceeded.

    Attributes:
        reason: under which refusals are counted.
        text: which limit, and whose.
    """

    reason: str
    text: str


CONNECTIONS: Final = "CONNECTION_QUOTA"
REQUESTS: Final = "REQUEST_QUOTA"
BYTES: Final = "BYTE_QUOTA"
IN_FLIGHT: Final = "IN_FLIGHT_QUOTA"


def excess(reason: str, owner: str, used: str, setting: str) -> Excess:
    """Return the limit that an owner exceeds."""
    return Excess(reason, f"{owner} {used} ({setting})")
