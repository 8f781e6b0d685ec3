"""ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME of messages of lite topics.

Upstream: `AckMessageProcessor.ackLite`, `ChangeInvisibleTimeProcessor`.
"""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.names import queue_name
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import Receipt
from mqlake.protocol.headers.pop import (
    AckHeader,
    ChangeInvisibleTimeAnswerHeader,
    ChangeInvisibleTimeHeader,
)


class LiteSettling:
    """Settles messages of lite topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._lite, self._runtime = state.lite, runtime
        self._offsets, self._now = (
            state.store.config.consumer_offsets,
            state.store.clock.milliseconds,
        )

    def acknowledge(self, request: Command, header: AckHeader, receipt: Receipt) -> Command:
        """Note that a message was consumed."""
        group, lite = header.consumer_group, self._lite
        queue = self._queue(header, receipt)
        if header.offset < (self._offsets.query(group, queue, 0) or 0):
            return response(request)
        following = lite.held.acknowledge((group, queue), header.offset, receipt.pop_time)
        if following is None:
            return response(request)
        if following < 0:
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, "ack offset illegal.")
        lite.commit(group, queue, following)
        if not lite.held.is_blocked((group, queue)) and lite.has_more(group, queue):
            lite.events.note(queue, group)
        return response(request)

    def change_time(
        self, request: Command, header: ChangeInvisibleTimeHeader, receipt: Receipt
    ) -> Command:
        """Change when a message is delivered again."""
        longest = self._runtime.settings.timer_max_delay_sec * 1000
        if not 0 <= header.invisible_time <= longest:
            reason = f"invisibleTime {header.invisible_time} is not between 0 and {longest} ms"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{reason} (timerMaxDelaySec)")
        queue, visible = self._queue(header, receipt), self._now() + header.invisible_time
        if header.offset >= (self._offsets.query(header.consumer_group, queue, 0) or 0):
            self._lite.held.change_time(
                (header.consumer_group, queue),
                header.offset,
                receipt.pop_time,
                visible,
                is_suspended=bool(header.suspend),
            )
        fields = ChangeInvisibleTimeAnswerHeader(
            pop_time=receipt.pop_time,
            invisible_time=visible - receipt.pop_time,
            revive_qid=receipt.revive_queue_id,
        )
        return response(request, header=fields)

    def _queue(self, header: AckHeader | ChangeInvisibleTimeHeader, receipt: Receipt) -> str:
        """Return the queue of a message.

        Raises:
            RemotingError: it is no message of a lite topic of the group.
        """
        if self._lite.group(header.consumer_group).topic != header.topic:
            reason = "group type or bind topic not match."
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if header.queue_id != 0 or not receipt.is_ordered:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "ack queue illegal.")
        queue = queue_name(header.topic, header.lite_topic or "")
        if header.offset > self._lite.queues.max_offset(header.topic, queue):
            raise RemotingError(ResponseCode.NO_MESSAGE, "ack offset illegal.")
        return queue
