"""What a returning master does while it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from mqlake.broker.acting import returning
from mqlake.broker.acting.returning import OwnLog, SlaveDelays
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.store.port import Store


class ReturningMaster:
    """Adopts the positions of its slaves at three moments of a start.

    It does nothing on a slave, or without acting masters.
    """

    def __init__(self, delays: Sequence[SlaveDelays], *, returns: bool) -> None:
        self._delays, self._returns = list(delays), returns
        self._own: OwnLog | None = None

    @classmethod
    async def before_open(cls, settings: BrokerSettings) -> Self:
        """Ask the slaves for their delivery positions; from its opening on, the store delivers."""
        returns = returning.returns(settings)
        delays = await returning.delay_offsets_of_slaves(settings) if returns else []
        return cls(delays, returns=returns)

    def store_opened(self, store: Store) -> None:
        """Adopt the delivery positions; the caller has awaited nothing since the store is open."""
        if not self._returns:
            return
        self._own = returning.own_log(store)
        if self._delays:
            returning.adopt_delay_offsets(self._delays, store.config.delay_offsets, self._own)
            store.scheduled.begin()

    async def before_serving(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        """Ask the slaves for their consumer offsets, and adopt them."""
        if self._own is None:
            return
        found = await returning.consumer_offsets_of_slaves(runtime.settings, runtime.slices)
        own = self._own._replace(static_topics=state.static_topics)
        known = state.store.config.consumer_offsets
        await runtime.slices.finish(returning.adopt_consumer_offsets(found, known, own))
