"""Read the revive topics: expired check points, and their acknowledgements.

Upstream: `PopReviveService`. Check points of an earlier process, or of RocketMQ, are handled too.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import NamedTuple

from mqlake.broker.pop.revive_queue import ReviveQueue
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.pop_counts import ReviveBehind
from mqlake.errors import MqlakeError
from mqlake.protocol.naming import REVIVE_PREFIX
from mqlake.remoting.slices import Job

_log = logging.getLogger(__name__)


class _Horizon(NamedTuple):
    """Acknowledgements due before `time` (ms) are before physical offset `log_end`."""

    time: int
    log_end: int


class Revival:
    """All queues of all revive topics.

    The revive topic has the cluster's name, and `revive_queue_num` queues. Check points that were
    stored under other settings are handled where they are.
    """

    def __init__(
        self, state: BrokerState, runtime: BrokerRuntime, revive_topic: ReviveTopic
    ) -> None:
        self._state, self._runtime = state, runtime
        self._store, self._revive_topic = state.store, revive_topic
        topics = {*state.topics, *self._store.reads.topics()}
        former = sorted(name for name in topics if name.startswith(REVIVE_PREFIX))
        self._topics = dict.fromkeys((revive_topic.topic, *former))
        self._queues: dict[tuple[str, int], ReviveQueue] = {}
        self._horizon = _Horizon(0, 0)
        self._failures: dict[tuple[str, int], str] = {}

    def look(self) -> Job[None]:
        """Revive what is due; to be done once a second.

        A check point waits until the timer has delivered everything that is due before the check
        point's time, and until all of that was read here. A queue that cannot be read does not keep
        the others waiting.
        """
        horizon = self._horizon
        is_readable = self._store.watermarks.dispatched >= horizon.log_end
        self._find_queues()
        for key, queue in self._queues.items():
            try:
                is_read = yield from queue.read()
                if is_read and is_readable:
                    yield from queue.revive(horizon.time)
                queue.commit()
            except MqlakeError as error:
                self._failed(key, error)
            else:
                self._failures.pop(key, None)
            yield
        if is_readable:
            self._horizon = _Horizon(
                self._store.timers.delivered_before, self._store.watermarks.end
            )

    def behind(self) -> list[ReviveBehind]:
        """Return how far each queue of the broker's own revive topic is behind."""
        found: list[ReviveBehind] = []
        for (topic, _), queue in list(self._queues.items()):
            if topic == self._revive_topic.topic:
                with suppress(MqlakeError):  # It cannot be read now; `look` reports that.
                    found.append(queue.behind())
        return found

    def commit(self) -> None:
        """Commit what was revived and is durable; to be done after the last sync of a stop."""
        for queue in self._queues.values():
            queue.commit()

    def _find_queues(self) -> None:
        count = max(1, self._runtime.settings.revive_queue_num)
        own = ((self._revive_topic.topic, number) for number in range(count))
        reads = self._store.reads
        stored = ((name, number) for name in self._topics for number in reads.queues(name))
        for key in (*own, *stored):
            if key not in self._queues:
                self._queues[key] = ReviveQueue(self._state, self._revive_topic, *key)

    def _failed(self, key: tuple[str, int], error: MqlakeError) -> None:
        reason = str(error)
        if self._failures.get(key) != reason:  # The same failure recurs every second.
            self._failures[key] = reason
            _log.warning(
                "%s, queue %d: its check points are not processed now, and are tried again: %s",
                *key,
                reason,
            )
