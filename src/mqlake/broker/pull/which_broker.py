"""Choose the broker, among those of one name, that a consumer pulls from next.

Upstream: `PullMessageProcessor.composeResponseHeader`.
"""

from __future__ import annotations

from struct import Struct

from mqlake.broker.pull.answers import code_of
from mqlake.broker.pull.reading import Found
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.memory import bytes_in_memory
from mqlake.client.cluster import MASTER
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.record import PHYSICAL_OFFSET_AT
from mqlake.protocol.codes import ResponseCode
from mqlake.store.results import Status

_PHYSICAL_OFFSET = Struct(">q")


class WhichBroker:
    """Directs consumers that lag to a slave, and the others to the master."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def suggested(self, group: SubscriptionGroup, found: Found) -> int:
        """Return the id of the broker to pull from next."""
        if not self._runtime.settings.slave_read_enable or self._acts:
            return MASTER  # Routes name an acting slave as the master.
        if self._is_old(found):
            return group.which_broker_when_consume_slowly
        return MASTER if self._has_master else group.broker_id

    def judged(self, found: Found, offset: int) -> tuple[int, Found]:
        """Return the response code for what was found from an offset on, and what to answer.

        A slave that lags, or kept less, moves no consumer to another offset: its master has what
        is missing. Upstream: `nextOffsetCorrection`.
        """
        code = code_of(found, offset)
        if code != ResponseCode.PULL_OFFSET_MOVED or not self._runtime.settings.is_slave:
            return code, found
        if found.status is Status.OFFSET_TOO_SMALL and not self._has_master:
            return code, found  # No broker has it.
        return ResponseCode.PULL_NOT_FOUND, found._replace(next_offset=offset)

    def is_redirected(self, found: Found) -> bool:
        """Return whether this is a slave whose consumers wait for messages at the master.

        A consumer that takes this slave for the master would ask again and again.
        """
        return self._has_master and not self._acts and not self._is_old(found)

    @property
    def _acts(self) -> bool:
        """Return whether clients may take this slave for the master."""
        replicas = self._state.replicas
        return replicas.is_acting or replicas.has_acted

    @property
    def _has_master(self) -> bool:
        return self._runtime.settings.is_slave and self._state.replicas.master_answers

    def _is_old(self, found: Found) -> bool:
        """Return whether messages are so far from the log's end that they may not be in memory."""
        if not found.pieces:
            return False
        (at,) = _PHYSICAL_OFFSET.unpack_from(found.pieces[-1], PHYSICAL_OFFSET_AT)
        behind = self._state.store.watermarks.end - at
        return behind > bytes_in_memory(self._runtime.settings)
