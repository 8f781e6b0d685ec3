"""What all owners of one kind use."""

from __future__ import annotations

import asyncio

from mqlake.remoting.quotas.quota import Quota, QuotaKind
from mqlake.remoting.quotas.usage import Usage


class Usages:
    """The owners of one kind that have connections, or have had some a moment ago.

    An owner that closes its connections and opens new ones continues with what it has used.

    Attributes:
        quota: what each of them may use.
    """

    def __init__(self, kind: QuotaKind, loop: asyncio.AbstractEventLoop) -> None:
        self._kind, self._loop = kind, loop
        self._of: dict[str, Usage] = {}
        self._settling: set[Usage] = set()
        self.quota = Quota()

    def __len__(self) -> int:
        return len(self._of)

    def set(self, quota: Quota) -> None:
        """Set what each of them may use; if that changes, rates count from now on."""
        if quota == self.quota:
            return
        self.quota, now = quota, self._loop.time()
        for usage in self._of.values():
            usage.begin(now)

    def join(self, owner: str, in_flight: int) -> Usage:
        """Count a connection of an owner, with its waiting requests; return what the owner uses."""
        usage = self._of.get(owner)
        if usage is None:
            usage = self._of[owner] = Usage(self._kind, owner, self._loop.time())
        usage.connections += 1
        usage.in_flight += in_flight
        return usage

    def leave(self, usage: Usage, in_flight: int) -> None:
        """Take a connection back, with its waiting requests."""
        usage.connections -= 1
        usage.in_flight -= in_flight
        if not usage.connections and usage not in self._settling:
            self._forget(usage)

    def _forget(self, usage: Usage) -> None:
        """Forget an owner without connections once its rates no longer count."""
        self._settling.discard(usage)
        if usage.connections:
            return
        seconds = usage.settled_in(self.quota, self._loop.time())
        if seconds > 0:
            self._settling.add(usage)
            self._loop.call_later(seconds, self._forget, usage)
        else:
            del self._of[usage.owner]
