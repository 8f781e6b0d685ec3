"""What the ordinary path has decided about sends, for as long as it would decide the same again."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from mqlake.broker.lane import layout
from mqlake.broker.lane.topics import MOST_OF_TOPIC, LaneTopics
from mqlake.broker.lane.users import LaneUsers
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.checks import MULTI_TAG
from mqlake.broker.send.send import SendMessages
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.next_offsets import NextTables
from mqlake.errors import FormatError
from mqlake.formats.config.topics import Topic
from mqlake.formats.topic_names import OF_GROUPS, RETRY_PREFIX
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.connection import Peer
from mqlake.remoting.stream.frame_reader import Frames
from mqlake.store.queues.queue_kind import kind_of

if TYPE_CHECKING:
    from mqlake.broker.lane.kernel import LaneKernel
    from mqlake.dispatch.batch import Bytes, Longs

_TOPIC: Final = "b"
"""The header field with the topic."""
_CODES: Final = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE


class SendDecisions:
    """The topics to which sends were accepted, and the users who have signed some.

    Attributes:
        topics: the topics, in the form that the kernel reads.
        users: the users who have signed requests.
    """

    def __init__(
        self, sends: SendMessages, state: BrokerState, runtime: BrokerRuntime, users: LaneUsers
    ) -> None:
        self._checks, self._direct = sends.checks, state.topics.direct
        self._outside, self._watermarks = state.store.appends.outside, state.store.watermarks
        self._lite, self._light = state.lite, state.store.light
        self._copies, self._live = state.store.copies, runtime.live
        config = state.store.config
        self._tables = config.topics, config.static_topics
        self._settings = runtime.live.now
        self._changes: tuple[int, int] = self._count()
        self.topics = LaneTopics()
        self._outside.on_remove(self.topics.forget_places)
        self.users = users
        users.note_permissions(self.topics.permissions)

    def _count(self) -> tuple[int, int]:
        topics, static_topics = self._tables
        return topics.changes, static_topics.changes

    @property
    def must_wait(self) -> bool:
        """Return whether sends are answered once they are durable, or on slaves."""
        return not self._watermarks.confirms_at_append

    @property
    def are_possible(self) -> bool:
        """Return whether sends may be put, and none of them is to be logged, or to be refused
        because slaves are missing.
        """
        if not self._outside.is_open or not self.users.are_silent:
            return False
        return not self.must_wait or self._copies.missing is None

    def renew(self) -> bool:
        """Forget what may have changed; return whether the settings have."""
        is_changed = self._live.now is not self._settings
        changes = self._count()
        if is_changed or changes != self._changes:
            self.topics.clear()
            self._settings, self._changes = self._live.now, changes
        self.users.renew()
        return is_changed

    def ask_place(self, queue: int) -> None:
        """Ask for the place of a queue in the array of next offsets."""
        self.topics.places[queue] = 1 + self._outside.place(self.topics.queues[queue])

    def find_out(self, kernel: LaneKernel, peer: Peer, reason: int, connection: int) -> bool:
        """Find out who has signed the last request of a connection, or whether a user may send to a
        topic; return whether so.

        Args:
            reason: NEW_USER or NEW_PERMISSION.
            connection: its number.
        """
        numbers = kernel.numbers
        if reason == layout.NEW_PERMISSION:
            return self.ask_permission(numbers[layout.SIGNER], numbers[layout.TOPIC])
        number = self.users.ask(peer)
        kernel.note_signer(connection, number)
        return number > 0

    def ask_permission(self, number: int, topic: int) -> bool:
        """Return whether a user may send to a topic, and note it if so.

        Args:
            number: of the user, who is in the table.
            topic: its place in the table of topics.
        """
        fields = {_TOPIC: self.topics.name(topic)}
        place = self.users.place_if_permitted(
            number, [request(code, dict(fields)) for code in _CODES]
        )
        if place is not None:
            self.topics.permissions.permit(topic, place)
        return place is not None

    @property
    def next_offsets(self) -> NextTables:
        """The tables of the next offsets of lite topics."""
        return self._lite.queues.next_offsets

    @property
    def lite_seed(self) -> int:
        """The seed of the hashes by which the queues of lite topics are known."""
        return 0 if self._light is None else self._light.seed

    def ask_lite(self, kernel: LaneKernel, peer: Peer) -> bool:
        """Find the next offset of a lite topic; return whether messages may be put to it."""
        try:
            self._lite.expect(*kernel.lite_queue(), peer, kernel.numbers[layout.END])
        except RemotingError:  # This is reported when the send is served by itself.
            return False
        return True

    def serve(
        self,
        kernel: LaneKernel,
        log: Bytes,
        ends: Longs,
        peer_of: Callable[[int], Peer | None],
    ) -> int:
        """Call the kernel as `LaneKernel.serve` is called; return why it ends.

        As long as it needs only the next offsets of lite topics, it is called again at once: that
        appends nothing.

        Args:
            peer_of: returns the connection with a number.
        """
        numbers, following = kernel.numbers, self.next_offsets
        while (reason := kernel.serve(log, ends, following)) == layout.NEW_LITE:
            peer = peer_of(numbers[layout.CONNECTION])
            is_late = monotonic_ns() >= numbers[layout.UNTIL]
            if is_late or peer is None or not self.ask_lite(kernel, peer):
                break
            following = self.next_offsets
        return reason

    def ask_topic(self, peer: Peer, frames: Frames) -> bool:
        """Ask whether the first of these sends is accepted; return whether others like it may be
        put.
        """
        topic = self._topic_of(peer, frames)
        self.renew()  # The topic may have been created just now.
        if topic is None or (route := self._outside.route(topic.topic_name)) is None:
            return False
        takes_batches = not kind_of(topic).has_batches
        return self.topics.add(
            topic.topic_name,
            _queues(topic),
            route,
            takes_batches=takes_batches,
            takes_lites=self._light is not None and not topic.topic_name.startswith(OF_GROUPS),
        )

    def _topic_of(self, peer: Peer, frames: Frames) -> Topic | None:
        """Return the topic of a send that is accepted, if all sends to it are usual."""
        try:
            header = frames.first.header(SendMessageHeaderV2)
            if header.topic.startswith(RETRY_PREFIX) or self._direct(header.topic) is None:
                return None
            topic = self._checks.topic(header, peer)
        except (FormatError, RemotingError):  # This is reported when the send is served by itself.
            return None
        is_usual = topic.topic_filter_type != MULTI_TAG and _queues(topic) <= MOST_OF_TOPIC
        # A damaged topics.json may have a topic under another's name.
        return topic if is_usual and topic.topic_name == header.topic else None


def _queues(topic: Topic) -> int:
    return max(topic.write_queue_nums, topic.read_queue_nums)
