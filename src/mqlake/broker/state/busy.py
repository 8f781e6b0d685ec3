"""Count requests that were turned away, by reason."""

from __future__ import annotations

from collections import Counter

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

BUSY = ResponseCode.SERVICE_NOT_AVAILABLE
"""RocketMQ answers SYSTEM_BUSY, on which its clients of 4.9 give up; on the code used here, all
clients send again.
"""


class Busy:
    """Counts requests that were turned away although they were valid.

    Attributes:
        counts: by reason, with which the remark of the answer also begins.
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
