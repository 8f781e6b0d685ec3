"""What follows when a queue of a live store has got entries."""

from __future__ import annotations

from mqlake.store.live_settings import Current
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.reads.arrivals import Arrivals
from mqlake.store.settings import StoreSettings


class NewMessages:
    """Notifies the readers of a store. For the store's thread."""

    def __init__(
        self, settings: Current[StoreSettings], offsets: QueueOffsets, arrivals: Arrivals
    ) -> None:
        self._settings, self._offsets, self._arrivals = settings, offsets, arrivals

    def note(self, topic: str, queue_id: int, end: int) -> None:
        """Notify readers of new messages; note the next offset of a queue if a master has put
        them.
        """
        if self._settings.now.is_slave:
            self._offsets.set(topic, queue_id, end)
        self._arrivals(topic, queue_id, end)
