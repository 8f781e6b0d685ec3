"""Single sends: one typical frame is read and put by two calls of compiled functions.

A producer that waits for each answer sends such frames. The checks of the first send to a topic
are made the ordinary way. What they decide stands as long as everything that they read is still the
same object: the settings and the topic. Frames that are unusual in any way are left to
`SendMessages`, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import Answers
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import Topic
from mqlake.formats.host import V4_SIZE
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames

if TYPE_CHECKING:
    from mqlake.broker.send.single_frames import SingleFrames

_MOST: Final = 4096
"""Topics whose checks are remembered. Beyond it, all are dropped."""
_RETRY: Final = RETRY_PREFIX.encode()
_LONGEST: Final = 63 << 10
"""Bytes of a frame. A longer one may be a record that `Appends.sent` refuses."""


class _Checked(NamedTuple):
    """A topic to which a send was accepted, and the settings with which it was checked."""

    topic: Topic
    name: str
    queues: int
    settings: BrokerSettings


class SingleSends:
    """Puts and answers single sends.

    Args:
        topic_of: returns the topic of the first frame if its send passes all checks.
        put_waiting: puts the messages that arrived before.
    """

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        topic_of: Callable[[Peer, Frames], Topic | None],
        put_waiting: Callable[[], None],
    ) -> None:
        self._live, self._topic = runtime.live, state.topics.direct
        self._put_times = state.stats.put_times
        self._append, self._watermarks = state.store.appends.sent, state.store.watermarks
        self._topic_of, self._put_waiting = topic_of, put_waiting
        self._checked: dict[bytes, _Checked] = {}

    def use(self, answers: Answers) -> None:
        """The argument makes the answers."""
        self._templates = answers.success
        self._is_usable = len(answers.host) == 2 * V4_SIZE  # in hexadecimal digits

    def answer(self, peer: Peer, frames: Frames, reader: SingleFrames) -> bytes | None:
        """Put the first of these frames; return its answer, None if it was not put."""
        if not self._may_put(peer):
            return None
        data = frames.data
        end, topic_at, size, queue_id, opaque, key_at, key_size = reader.read(data, frames.at)
        if not end or end - frames.at > _LONGEST:
            return None
        checked = self._checked_topic(data[topic_at : topic_at + size], peer, frames)
        if checked is None or queue_id >= checked.queues:
            return None
        self._put_waiting()
        begin = perf_counter()
        placed = self._append(
            checked.name, queue_id, peer.address, data, reader.properties, reader.numbers
        )
        if placed is None:
            return None
        physical_offset, queue_offset = placed
        key = reader.key(key_at, key_size)
        self._put_times.add(perf_counter() - begin)
        template = self._templates[data[frames.at + 4]]
        frames.at = end
        return template.fill(physical_offset, queue_id, queue_offset, key, opaque)

    def _may_put(self, peer: Peer) -> bool:
        """Return whether `Appends.sent` would put a message, and it may be answered at once.

        It writes IPv4 addresses only.
        """
        is_v4 = self._is_usable and not peer.address.startswith("[")
        return is_v4 and self._watermarks.confirms_at_append

    def _checked_topic(self, name: bytes, peer: Peer, frames: Frames) -> _Checked | None:
        checked = self._checked.get(name)
        if (
            checked is not None
            and checked.settings is self._live.now
            and checked.topic is self._topic(checked.name)
        ):
            return checked
        self._checked.pop(name, None)
        topic = None if name.startswith(_RETRY) else self._topic_of(peer, frames)
        if topic is None:
            return None
        if len(self._checked) >= _MOST:
            self._checked.clear()
        queues = max(topic.write_queue_nums, topic.read_queue_nums)
        checked = _Checked(topic, topic.topic_name, queues, self._live.now)
        self._checked[name] = checked
        return checked
