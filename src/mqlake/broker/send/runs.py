"""Runs of sends over one connection: kernels put and answer many in one call, or one by itself.

Sends that they leave are accepted one by one by `SendMessages`, with the same result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import Answers
from mqlake.broker.send.checks import MULTI_TAG, SendChecks
from mqlake.broker.send.company import Company
from mqlake.broker.send.properties import StoredProperties
from mqlake.broker.send.singles import SingleSends
from mqlake.broker.send.sizes import SendSizes
from mqlake.broker.send.waiting_runs import WaitingRuns, all_wait, waits
from mqlake.broker.state.broker_state import BrokerState
from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import FormatError
from mqlake.formats.config.topics import Topic
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames
from mqlake.remoting.limits import Limits
from mqlake.store.queues.queue_kind import kind_of

if TYPE_CHECKING:
    from mqlake.broker.send.run_frames import Most, Run, SendAnswers, SendRuns
    from mqlake.broker.send.single_frames import SingleFrames

_log = logging.getLogger(__name__)

_MOST_QUEUES = 4096
_FEWEST = 3
"""Minimum number of single messages in a run; one batch is enough."""
_JSON = int(Serialization.JSON)


class _Kernels(NamedTuple):
    runs: SendRuns
    answers: SendAnswers
    singles: SingleFrames


class UsualSends(NamedTuple):
    """How usual sends are read, stored and answered.

    Attributes:
        most: maximum sizes.
        own: the broker's properties, which follow the producer's.
        answers: makes the answers.
    """

    most: Most
    own: bytes
    answers: Answers


class Runs:
    """Accepts runs of sends.

    Args:
        put_waiting: puts the messages that arrived before a run.
        unconfirmed: returns how many sends wait that were not put in runs.

    Attributes:
        waiting: the runs that wait for slaves.
    """

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        put_waiting: Callable[[], None],
        unconfirmed: Callable[[], int],
    ) -> None:
        self._state, self._runtime = state, runtime
        self._store, self._put_waiting = state.store, put_waiting
        self._direct = state.topics.direct
        self._is_usable = is_compiled()
        self.waiting = WaitingRuns(state, runtime, unconfirmed)
        self._singles = SingleSends(state, runtime, self.topic_of, put_waiting)
        self._company = Company(asyncio.get_running_loop())

    def use(
        self, checks: SendChecks, sizes: SendSizes, properties: StoredProperties, answers: Answers
    ) -> None:
        """The other arguments check, store and answer."""
        self._topic = checks.topic
        self._own = np.frombuffer(properties.own.encode(), np.uint8)
        self._singles.use(answers)
        self._answers = answers
        self._longest_properties = sizes.properties
        self._longest_body = min(self._runtime.settings.max_message_size, sizes.body)
        self._success, self._host = answers.binary_success, answers.host
        self._failed = answers.failed
        self._loading: asyncio.Future[_Kernels] | None = None
        self._loaded: _Kernels | None = None

    def load(self) -> asyncio.Future[_Kernels]:
        """Load the kernels in another thread; until that is done, no run is accepted."""
        if self._loading is None:
            longest = self._longest_body, self._longest_properties
            make = partial(_load, longest, self._success, self._host, self._own.tobytes())
            self._loading = asyncio.get_running_loop().run_in_executor(None, make)
        return self._loading

    def usual(self) -> UsualSends:
        """Return how usual sends are served by the current settings."""
        from mqlake.broker.send.run_frames import Most

        limits = Limits()
        most = Most(limits.frame, limits.header, self._longest_body, self._longest_properties)
        return UsualSends(most, self._own.tobytes(), self._answers)

    def take(self, peer: Peer, frames: Frames) -> int:
        """Put a run of single messages and answer it; return how many messages it had.

        Messages with headers in JSON, and few messages, are put one by one.
        """
        data, at = frames.data, frames.at
        length = int.from_bytes(data[at : at + 4])
        if data[at + 4] == _JSON or len(data) - at < _FEWEST * length:
            answer = self.take_one(peer, frames)
            if answer is None:
                return 0
            peer.send(answer)
            return 1
        if (found := self._of(peer, frames)) is None:
            return 0
        kernels, topic = found
        run = kernels.runs.find(data, at, _name(topic), _queues(topic), self._own)
        return self._put(peer, topic, frames, run, kernels.answers)

    def take_one(self, peer: Peer, frames: Frames) -> bytes | None:
        """Put the first message by itself; return its answer."""
        kernels = None if self._company.has(peer) else self._kernels()
        return None if kernels is None else self._singles.answer(peer, frames, kernels.singles)

    def take_batches(self, peer: Peer, frames: Frames) -> int:
        """Put a run of batches, all or none, and answer it; return how many it had."""
        found = self._of(peer, frames)
        if found is None or kind_of(found[1]).has_batches:
            return 0  # Inner batches are put one by one.
        kernels, topic = found
        run = kernels.runs.find_batches(frames.data, frames.at, _name(topic), _queues(topic))
        run = _shortened(run, self._longest_properties)
        return self._put(peer, topic, frames, run, kernels.answers, whole=True)

    def _put(
        self,
        peer: Peer,
        topic: Topic,
        frames: Frames,
        run: Run,
        answers: SendAnswers,
        *,
        whole: bool = False,
    ) -> int:
        if not len(run.sends):
            return 0
        must_wait = not self._store.watermarks.confirms_at_append
        if must_wait and not all_wait(run, frames.data):
            return 0
        self._put_waiting()
        begin = time.perf_counter()
        put = self._store.appends.drafts(
            run.drafts, topic.topic_name, run.queue_ids, peer.address, whole=whole
        )
        is_all = put == len(run.drafts.rows)
        sent = len(run.sends) if is_all else put
        if sent and must_wait:
            run_put = run._replace(sends=run.sends[:sent])
            self.waiting.add(peer, run_put, answers.of(run, sent), begin, self._failed, frames.code)
        elif sent:
            self._state.stats.put_times.add(time.perf_counter() - begin, sent)
            peer.send(answers.of(run, sent))
            peer.flush()
        frames.at = run.end if is_all else int(run.sends["frame_at"][put])
        return sent

    def _of(self, peer: Peer, frames: Frames) -> tuple[_Kernels, Topic] | None:
        # Without confirmation at the append, what is put waits for slaves.
        may_put = self._store.watermarks.confirms_at_append or self.waiting.is_open
        kernels = self._kernels() if may_put else None
        topic = self.topic_of(peer, frames) if kernels else None
        return (kernels, topic) if kernels and topic else None

    def _kernels(self) -> _Kernels | None:
        if self._loaded is not None or not self._is_usable:
            return self._loaded
        loading = self.load()
        if not loading.done():
            return None
        if (failure := loading.exception()) is not None:
            _log.error("sends are put one by one, because kernels cannot be loaded: %s", failure)
            self._is_usable = False
            return None
        self._loaded = loading.result()
        return self._loaded

    def topic_of(self, peer: Peer, frames: Frames) -> Topic | None:
        """Return the topic of the first send, if runs to it are accepted."""
        try:
            header = frames.first.header(SendMessageHeaderV2)
            if header.topic.startswith(RETRY_PREFIX) or self._direct(header.topic) is None:
                return None
            if not self._store.watermarks.confirms_at_append and not waits(header.properties):
                return None
            topic = self._topic(header, peer)
        except (FormatError, RemotingError):  # This is reported when the send is served by itself.
            return None
        is_usual = topic.topic_filter_type != MULTI_TAG and _queues(topic) <= _MOST_QUEUES
        # A damaged topics.json may have a topic under another's name.
        return topic if is_usual and topic.topic_name == header.topic else None


def _shortened(run: Run, longest_properties: int) -> Run:
    """Return the sends of a run before the first with an unusually long message."""
    too_long = np.flatnonzero(run.drafts.rows["properties_length"] > longest_properties)
    if not len(too_long):
        return run
    count = messages = 0
    for of_send in run.sends["messages"].tolist():
        if messages + of_send > int(too_long[0]):
            break
        count, messages = count + 1, messages + of_send
    drafts = run.drafts._replace(rows=run.drafts.rows[:messages])
    end = int(run.sends["frame_at"][count])
    return run._replace(drafts=drafts, sends=run.sends[:count], end=end)


def _load(longest: tuple[int, int], success: Command, host: str, own: bytes) -> _Kernels:
    # Loaded late and in another thread: a broker must answer before Numba has loaded these.
    from mqlake.broker.send import warm_up
    from mqlake.broker.send.run_frames import Most, SendAnswers, SendRuns
    from mqlake.broker.send.single_frames import SingleFrames

    warm_up.load()
    limits = Limits()
    most = Most(limits.frame, limits.header, *longest)
    return _Kernels(SendRuns(most), SendAnswers(success, host), SingleFrames(most, own))


def _name(topic: Topic) -> Bytes:
    return np.frombuffer(topic.topic_name.encode(), np.uint8)


def _queues(topic: Topic) -> int:
    return max(topic.write_queue_nums, topic.read_queue_nums)
