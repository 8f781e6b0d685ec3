"""All parts of pop consumption, put together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter

from mqlake.broker.pop.acknowledging import Acknowledging
from mqlake.broker.pop.assignment import AssignmentRequests
from mqlake.broker.pop.in_flight import InFlight
from mqlake.broker.pop.notifications import Notifications
from mqlake.broker.pop.ordered import Ordered
from mqlake.broker.pop.peeking import Peeking
from mqlake.broker.pop.reading import Reading
from mqlake.broker.pop.requests import PopRequests
from mqlake.broker.pop.revival import Revival
from mqlake.broker.pop.revive_topic import ReviveTopic
from mqlake.broker.pop.rounds import Rounds
from mqlake.broker.pop.waiting import WaitingPops
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.pop_counts import ReviveBehind
from mqlake.errors import DiskError, MqlakeError, SyncError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.permission import Permission
from mqlake.remoting.route import Route
from mqlake.remoting.slices import Job

_LOOK_INTERVAL = 0.1
_REVIVE_INTERVAL = 1.0

_log = logging.getLogger(__name__)


class PopConsumption:
    """Serves pop consumers; redelivers messages that they do not acknowledge."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._store = state, runtime, state.store
        self._in_flight = InFlight(self._store.config.consumer_offsets)
        self._revive_topic = ReviveTopic(state, runtime, self._in_flight)
        rounds = Rounds(state, runtime)
        self._ordered = ordered = Ordered(state, runtime)
        waiting = WaitingPops(state, runtime, rounds)
        reading = Reading(state, runtime, self._in_flight, ordered, self._revive_topic)
        self._requests = PopRequests(state, runtime, reading, waiting, rounds)
        self._notifications = Notifications(
            state=state,
            runtime=runtime,
            reading=reading,
            ordered=ordered,
            waiting=waiting,
            rounds=rounds,
            check_topic=self._requests.check_topic,
        )
        self._peeking = Peeking(state, runtime, reading, rounds, self._requests.check_topic)
        self._acknowledging = Acknowledging(
            state, runtime, self._in_flight, self._revive_topic, ordered, waiting
        )
        self._assignment = AssignmentRequests(state, runtime)
        for part in (self._in_flight, ordered, waiting, self._assignment):
            state.endings.add(part)
        self._revival: Revival | None = None
        state.pop_counts.count_with(self._in_flight.sizes, self._behind)
        if runtime.settings.timer_wheel_enable:
            runtime.repeating.every_job(_LOOK_INTERVAL, self._look)
            runtime.repeating.every_job(_REVIVE_INTERVAL, self._revive)
            runtime.on_stop.append(self._stop)
            runtime.live.on_change(self._end_term, "broker_role")

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.POP_MESSAGE, self._requests.pop, Permission.SUBSCRIBE),
            Route(RequestCode.PEEK_MESSAGE, self._peeking.peek, Permission.SUBSCRIBE),
            Route(RequestCode.NOTIFICATION, self._notifications.notify, Permission.SUBSCRIBE),
            Route(RequestCode.POLLING_INFO, self._notifications.polling_info, Permission.READ),
            Route(RequestCode.ACK_MESSAGE, self._acknowledging.acknowledge, Permission.SUBSCRIBE),
            Route(
                RequestCode.BATCH_ACK_MESSAGE,
                self._acknowledging.acknowledge_batch,
                Permission.SUBSCRIBE,
            ),
            Route(
                RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
                self._acknowledging.change_time,
                Permission.SUBSCRIBE,
            ),
            Route(RequestCode.QUERY_ASSIGNMENT, self._assignment.query, Permission.SUBSCRIBE),
            Route(
                RequestCode.SET_MESSAGE_REQUEST_MODE, self._assignment.set_mode, Permission.UPDATE
            ),
            Route(
                RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
                self._assignment.all_modes,
                Permission.READ,
            ),
        )

    def _look(self) -> Job[None]:
        if not self._runtime.settings.is_slave:
            begin = perf_counter()
            yield from self._revive_topic.look(self._store.clock.milliseconds())
            self._state.pop_counts.look_times.add((perf_counter() - begin) * 1000)

    def _behind(self) -> Sequence[ReviveBehind]:
        return self._revival.behind() if self._revival is not None else ()

    def _revive(self) -> Job[None]:
        """Revive what is due; a slave leaves that to its master, and begins once it is a master."""
        if self._runtime.settings.is_slave:
            self._revival = None
            return
        if self._revival is None:
            self._revival = Revival(self._state, self._runtime, self._revive_topic)
        yield from self._revival.look()

    def _end_term(self) -> None:
        """Forget all pops if this broker is not the master any more: they are the next one's."""
        if self._runtime.settings.is_slave:
            self._in_flight.clear()
            self._ordered.clear()

    async def _stop(self) -> None:
        """Store what was known only in memory, and that the groups have passed it.

        Raises:
            DiskError: the disk refused it twice, or a sync failed. The next start finds the groups'
                offsets before these pops: acknowledged messages come again.
        """
        await self._runtime.slices.finish(self._keep_all())
        try:
            self._store.sync.now()
        except SyncError:
            raise
        except DiskError as error:
            _log.warning("the log is synced again at the stop: %s", error)
            self._store.sync.now()
        await self._runtime.slices.finish(self._in_flight.commit(self._store.watermarks.flushed))
        if self._revival is not None:
            self._revival.commit()  # Otherwise the next process would revive all of that again.

    def _keep_all(self) -> Job[None]:
        for pop in self._in_flight.all():
            try:
                self._revive_topic.keep(pop)
            except MqlakeError as error:
                # The group's offset stays before it, so its messages are popped again.
                _log.warning("a check point was not stored at the stop: %s", error)
            yield
