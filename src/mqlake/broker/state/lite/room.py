"""How many lite topics there are, and how many more there may be."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.shares import Shares
from mqlake.store.port import Store


class LiteTopicRoom:
    """Counts the lite topics of a broker approximately, and those that each address has created."""

    def __init__(self, store: Store, runtime: BrokerRuntime) -> None:
        self._store, self._runtime = store, runtime
        self._created = Shares(lambda: runtime.settings.max_address_share)
        self._count: int | None = None

    def count(self) -> int:
        """Return how many lite topics there are."""
        if self._count is None:
            light = self._store.light
            self._count = 0 if light is None else sum(map(light.count, light.topics()))
            self._created.shrink(self._count)  # Files were removed, and with them lite topics.
        return self._count

    def look_again(self) -> None:
        """Count again: some may be gone."""
        self._count = None

    def check(self, owner: str) -> None:
        """Refuse another lite topic if there are too many.

        Raises:
            RemotingError: there are.
        """
        most = self._runtime.settings.max_lmq_consume_queue_num
        refusal = self._created.refusal(owner, self.count(), most, "maxLmqConsumeQueueNum")
        if refusal is not None:
            raise RemotingError(ResponseCode.LMQ_QUOTA_EXCEEDED, refusal)

    def add(self, owner: str) -> None:
        """Count another lite topic."""
        self._created.add(owner)
        self._count = self.count() + 1
