"""What the ordinary path has decided about sends, for as long as it would decide the same again."""

from __future__ import annotations

from mqlake.broker.lane.topics import LaneTopics
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.send import SendMessages
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames

_CODE = int(RequestCode.SEND_MESSAGE_V2)


class SendDecisions:
    """The topics to which sends were accepted.

    Attributes:
        topics: the topics, in the form that the kernel reads.
    """

    def __init__(self, sends: SendMessages, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._topic_of, self._live = sends.topic_of, runtime.live
        self._outside, self._watermarks = state.store.appends.outside, state.store.watermarks
        config = state.store.config
        self._tables = config.topics, config.static_topics
        self._settings = runtime.live.now
        self._changes: tuple[int, int] = self._count()
        self._end = -1
        self.topics = LaneTopics()

    def _count(self) -> tuple[int, int]:
        topics, static_topics = self._tables
        return topics.changes, static_topics.changes

    @property
    def are_possible(self) -> bool:
        """Return whether sends may be put and answered at once."""
        return self._outside.is_open and self._watermarks.confirms_at_append

    def renew(self) -> bool:
        """Forget what may have changed; return whether the settings have."""
        is_changed = self._live.now is not self._settings
        changes = self._count()
        if is_changed or changes != self._changes:
            self.topics.clear()
            self._settings, self._changes = self._live.now, changes
        return is_changed

    def expect(self, end: int) -> None:
        """Forget the next offsets of queues if something else was appended since `note_end`."""
        if end != self._end:
            self.topics.forget_offsets()
            self._end = end

    def note_end(self, end: int) -> None:
        """Note the physical offset after what the lane has appended."""
        self._end = end

    def ask_offset(self, queue: int) -> None:
        """Ask for the next offset of a queue."""
        self.topics.offsets[queue] = self._outside.next_offset(self.topics.queues[queue])

    def ask_topic(self, peer: Peer, data: bytes) -> bool:
        """Ask whether the send at the beginning of received data is accepted; return whether
        others like it may be put.
        """
        topic = self._topic_of(peer, Frames(data, 0, _CODE))
        self.renew()  # The topic may have been created just now.
        if topic is None or (route := self._outside.route(topic.topic_name)) is None:
            return False
        queues = max(topic.write_queue_nums, topic.read_queue_nums)
        return self.topics.add(topic.topic_name, queues, route)
