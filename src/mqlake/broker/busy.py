"""How often requests were turned away, by reason."""

from __future__ import annotations

from collections import Counter

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

BUSY = ResponseCode.SERVICE_NOT_AVAILABLE
"""RocketMQ says SYSTEM_BUSY, upon which its clients of 4.9 give up; upon this all send again."""


class Busy:
    """Counts requests that were turned away although nothing was wrong with them.

    Attributes:
        counts: by the reason that the remark of the answer begins with, too.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        """Count a request that was turned away."""
        self.counts[reason] += 1

    def refusal(self, reason: str, why: str) -> RemotingError:
        """Return the answer to such a request, and count it."""
        self.count(reason)
        return RemotingError(BUSY, f"[{reason}]broker busy: {why}")
