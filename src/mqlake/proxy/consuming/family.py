"""All methods by which messages are consumed."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.proxy.consuming.assignments import AssignedQueues
from mqlake.proxy.consuming.deliveries import Deliveries
from mqlake.proxy.consuming.pops import Pops
from mqlake.proxy.consuming.pulling import PullCalls
from mqlake.proxy.consuming.queue_offsets import OffsetCalls
from mqlake.proxy.consuming.receiving import Receiving
from mqlake.proxy.consuming.renewer import Renewer
from mqlake.proxy.consuming.settling import Settling
from mqlake.proxy.consuming.waiting_polls import WaitingPolls
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState


class Consuming:
    """Serves consumers."""

    def __init__(self, state: ProxyState) -> None:
        deliveries = Deliveries(state)
        renewer = Renewer(state, deliveries)
        waiting = WaitingPolls(state.settings)
        self._receiving = Receiving(state, Pops(state, deliveries, renewer), renewer, waiting)
        self._settling = Settling(state, deliveries, renewer)
        self._assigned = AssignedQueues(state)
        self._pulling = PullCalls(state, waiting)
        self._offsets = OffsetCalls(state)

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        settling, offsets = self._settling, self._offsets
        return (
            ServedMethod("QueryAssignment", self._assigned.query),
            ServedMethod("ReceiveMessage", self._receiving.receive, is_stream=True),
            ServedMethod("AckMessage", settling.acknowledge),
            ServedMethod("ChangeInvisibleDuration", settling.change_invisible),
            ServedMethod("ForwardMessageToDeadLetterQueue", settling.forward),
            ServedMethod("PullMessage", self._pulling.pull, is_stream=True),
            ServedMethod("UpdateOffset", offsets.update),
            ServedMethod("GetOffset", offsets.get),
            ServedMethod("QueryOffset", offsets.query),
        )
