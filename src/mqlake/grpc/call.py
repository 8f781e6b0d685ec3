"""What a handler knows of the call that it serves, besides the request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mqlake.grpc.status import GrpcStatus


class Call:
    """One call of a client.

    Attributes:
        method: the name of the method, such as "SendMessage".
        metadata: what the client sent with the call, by lower-case names; all of it is ASCII.
        peer: "ip:port" of the client.
        local: "ip:port" that the client is connected to.
        authority: the host and port by which the client named this server; "" if it named none.
        deadline: the time of `now` by which the client needs the answer; None if it waits for ever.
        is_cancelled: whether the client no longer waits for an answer.
    """

    __slots__ = (
        "_now",
        "_on_cancel",
        "authority",
        "deadline",
        "is_cancelled",
        "local",
        "metadata",
        "method",
        "peer",
    )

    def __init__(
        self,
        method: str,
        metadata: Mapping[str, str],
        *,
        peer: str,
        local: str,
        authority: str = "",
        deadline: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.method, self.metadata = method, metadata
        self.peer, self.local, self.authority = peer, local, authority
        self.deadline, self._now = deadline, now
        self.is_cancelled = False
        self._on_cancel: Callable[[], object] | None = None

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, 0 after it; None without a deadline."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - self._now())

    def cancel(self) -> None:
        """Note that the client no longer waits for an answer."""
        self.is_cancelled = True
        on_cancel, self._on_cancel = self._on_cancel, None
        if on_cancel is not None:
            on_cancel()

    def on_cancel(self, function: Callable[[], object]) -> None:
        """Call a function if the call ends before all responses were sent.

        It may be set by a handler that ends: responses can wait for the client after that.
        """
        self._on_cancel = function


class FinishedCall(NamedTuple):
    """What a call has cost.

    Attributes:
        call: what the handler knew of it.
        status: how it ended.
        seconds: from its headers to its end.
        received: bytes of its requests.
        sent: bytes of its responses.
    """

    call: Call
    status: GrpcStatus
    seconds: float
    received: int
    sent: int
