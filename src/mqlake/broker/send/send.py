"""Sends: those that arrive together are put in a single call, and answered together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import Answers
from mqlake.broker.send.checks import MULTI_TAG, Header, SendChecks
from mqlake.broker.send.dead_letters import DeadLetters
from mqlake.broker.send.priorities import PRIORITY_NAME, placed
from mqlake.broker.send.properties import (
    HALF,
    StoredProperties,
    is_half,
    without_dropped,
    without_pop_group,
)
from mqlake.broker.send.sizes import SendSizes
from mqlake.broker.send.unconfirmed import Unconfirmed
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.sent_properties import longest_place, place
from mqlake.broker.state.topics import any_queue
from mqlake.errors import MqlakeError
from mqlake.formats import sys_flag
from mqlake.formats.config.topics import Topic
from mqlake.formats.own_properties import LONGEST_SENT, TIMER_OUT_MS
from mqlake.formats.properties import (
    DELAY,
    LITE_TOPIC,
    REAL_TOPIC,
    UNIQ_KEY,
)
from mqlake.formats.property_edits import edit
from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.protocol import naming
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.recall import RecallHandle
from mqlake.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from mqlake.protocol.permission import Permission
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.remoting.connection import Peer
from mqlake.remoting.rewritten import Rewritten
from mqlake.remoting.route import Route
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.queues.queue_kind import kind_of

_MANY = 10_000
"""Messages of a batch whose answer, with all of their ids, is made once others were served."""
_RETRY, _GROUPS = naming.RETRY_PREFIX, naming.OF_GROUPS
_LITE_TOPIC = LITE_TOPIC.encode()
_TIMED = b"TIMER_DE"
"""Prefix of all properties that ask for a delivery time."""

_log = logging.getLogger(__name__)

_Put = TypeVar("_Put", Message, MessageBatch)

_PLAIN, _TIMED_SEND, _INNER = range(3)
_Sent = tuple[Peer, Command, int, str, int, str | None]
"""A pending send with what its answer needs: sender, message, queue, unique key, whether it may
have a delivery time or is an inner batch, and the retry topic of a dead letter.
"""


class UsualSends(NamedTuple):
    """How usual sends are stored and answered by the current settings.

    Attributes:
        longest_body, longest_properties: in bytes; of the properties as they are stored.
        own: the broker's properties, which follow the producer's.
        answers: makes the answers.
    """

    longest_body: int
    longest_properties: int
    own: bytes
    answers: Answers


class SendMessages:
    """Answers sends.

    Attributes:
        checks: decides which sends are accepted.
        unconfirmed: the sends that wait for the disk or for slaves.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._store = state, runtime, state.store
        self._keys = UniqueKeys(runtime.settings.broker_address, state.store.clock)
        self._dead_letters = DeadLetters(state)
        self.checks, self._sizes = SendChecks(state, runtime), SendSizes(state)
        self.unconfirmed = Unconfirmed(runtime)
        self._read_settings()
        runtime.live.on_change(self._read_settings, "max_message_size", "region_id", "trace_on")
        self._messages: list[Message] = []
        self._sent: list[_Sent] = []
        runtime.on_stop.append(self._answer_all)

    def _read_settings(self) -> None:
        settings = self._runtime.settings
        self._longest_body = settings.max_message_size
        self._properties = StoredProperties(settings, self._keys)
        self._answers = Answers(settings, self._state.busy)

    def usual(self) -> UsualSends:
        """Return how usual sends are stored and answered by the current settings."""
        sizes = self._sizes
        longest = min(self._longest_body, sizes.body)
        own = self._properties.own.encode()
        return UsualSends(longest, sizes.properties, own, self._answers)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.SEND_MESSAGE, self._send, Permission.PUBLISH, SendMessageHeader),
            Route(
                RequestCode.SEND_MESSAGE_V2,
                self._send_v2,
                Permission.PUBLISH,
                SendMessageHeaderV2,
            ),
            Route(
                RequestCode.SEND_BATCH_MESSAGE,
                self._send_v2,
                Permission.PUBLISH,
                SendMessageHeaderV2,
            ),
        )

    def _send(self, peer: Peer, request: Command) -> None:
        self._take(peer, request, request.header(SendMessageHeader))

    def _send_v2(self, peer: Peer, request: Command) -> None:
        self._take(peer, request, request.header(SendMessageHeaderV2))

    def _take(self, peer: Peer, request: Command, header: Header) -> None:
        name = header.topic
        topic = self.checks.topic(header, peer)
        if self.unconfirmed.count:
            self._check_room()
        properties, unique_key = self._properties.of(header.properties)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = _writable_queue(topic)
        body_size, sizes = len(request.body), self._sizes
        if header.batch:
            sizes.check_batch(body_size)
            batch = _batch(peer, request, header, topic, queue_id, (properties, unique_key))
            kind = _INNER if batch.is_inner else _PLAIN
            sent = peer, request, queue_id, unique_key, kind, None
            self._put_alone(self._store.appends.batch, batch, sent)
            return
        dead = None
        if name.startswith(_RETRY):
            name, properties = self._sent_back(header, peer, properties)
            if name != header.topic:
                dead, queue_id = header.topic, any_queue(naming.DLQ_QUEUES)
        placed_in = _placed(topic, properties, queue_id)
        # The queue of a request that was rewritten is not the producer's choice.
        if placed_in != (properties, queue_id) and not isinstance(request, Rewritten):
            properties, queue_id = placed_in
        if _LITE_TOPIC in properties:
            properties = self._in_lite_topic(topic, properties, body_size, peer)
        if len(properties) > sizes.properties or body_size > sizes.body:
            properties = sizes.check(properties, body_size)
        message = Message(
            name,
            bytes(request.body),
            None,
            (),
            None,
            queue_id,
            header.flag,
            _flags(header, topic),
            header.born_timestamp,
            peer.address,
            header.reconsume_times or 0,
            0,
            0,
            properties,
        )
        kind = _TIMED_SEND if _TIMED in properties else _PLAIN
        sent = peer, request, queue_id, unique_key, kind, dead
        if HALF in properties and is_half(properties, message.reconsume_times):
            self._check_half(properties, body_size, unique_key)
            self._put_alone(self._store.appends.half, message, sent)
            return
        if body_size > self._longest_body and message.reconsume_times and name.startswith(_GROUPS):
            # It was accepted with a larger maxMessageSize, and its consumer sends it back.
            self._put_alone(self._store.appends.again, message, sent)
            return
        if not self._messages:
            peer.after_part(self.put_waiting)
        self._messages.append(message)
        self._sent.append(sent)

    def _sent_back(self, header: Header, peer: Peer, properties: bytes) -> tuple[str, bytes]:
        """Return the topic and the properties of a message that its consumer sends back."""
        name = self._dead_letters.topic(header, peer)
        properties = without_pop_group(properties)
        return name, properties if name == header.topic else _undelayed(properties)

    def _in_lite_topic(self, topic: Topic, properties: bytes, body_size: int, peer: Peer) -> bytes:
        """Return the properties with the message's place; what is refused takes none."""
        lite, sizes = self._state.lite, self._sizes
        queue = lite.queue_of(topic, properties)
        if queue is None:
            return properties
        longest = longest_place(queue)
        if len(properties) + longest > sizes.properties or body_size > sizes.body:
            properties = sizes.check(properties + place(queue), body_size)[:-longest]
        if lite.queues.is_full:
            self.put_waiting()
        return properties + lite.next_place(topic, queue, peer)

    def _check_half(self, properties: bytes, body_size: int, unique_key: str) -> None:
        self._check_transactions()
        if len(properties) + len(unique_key) > self._sizes.half_properties:
            self._sizes.check(properties, body_size, unique_key)

    def _check_room(self) -> None:
        if self.unconfirmed.room <= 0:
            count = self.unconfirmed.count
            raise self._state.busy.refusal(
                "WAITING_FOR_DISK", f"{count} sends wait for the disk or for slaves"
            )

    def _check_transactions(self) -> None:
        settings = self._runtime.settings
        if settings.reject_transaction_message:
            reason = f"the broker[{settings.broker_ip1}] sending transaction message is forbidden"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)

    def put_waiting(self) -> None:
        """Put the sends that have arrived since."""
        if not self._messages:
            return
        messages, sent = self._messages, self._sent
        self._messages, self._sent = [], []
        begin = time.perf_counter()
        try:
            results = self._store.appends.many(messages)
        except Exception as error:  # noqa: BLE001 (no dispatcher answers these requests)
            self._fail(sent, error)
            return
        self._finish(sent, results, begin)

    def _put_alone(self, append: Callable[[_Put], PutResult], put: _Put, sent: _Sent) -> None:
        """Put what cannot be put together with other sends."""
        self.put_waiting()
        begin = time.perf_counter()
        self._finish([sent], [append(put)], begin)

    def _finish(self, sent: Sequence[_Sent], results: Sequence[PutResult], begin: float) -> None:
        is_short = results[0].count < _MANY
        if is_short and self._store.watermarks.unconfirmed(results) is None:
            self._answer(sent, results, begin)
            return
        for peer, request, *_ in sent:
            peer.drop_body(request)
        self.unconfirmed.answer(len(sent), self._answer_once_confirmed(sent, results, begin))

    async def _answer_once_confirmed(
        self, sent: Sequence[_Sent], results: Sequence[PutResult], begin: float
    ) -> None:
        try:
            results = await self._store.appends.confirm(results)
            self._answer(sent, results, begin)
        except Exception as error:  # noqa: BLE001 (as in `put_waiting`)
            self._fail(sent, error)

    def _fail(self, sent: Sequence[_Sent], error: Exception) -> None:
        """Answer sends whose messages may or may not have been put."""
        _log.error("%d sends failed", len(sent), exc_info=error)
        remark = f"{type(error).__name__}: {error}"
        for peer, request, *_ in sent:
            peer.answer(request, response(request, ResponseCode.SYSTEM_ERROR, remark=remark))

    async def _answer_all(self) -> None:
        """Answer what was put, before the connections are closed."""
        self.put_waiting()
        await self.unconfirmed.finish()

    def _answer(self, sent: Sequence[_Sent], results: Sequence[PutResult], begin: float) -> None:
        self._state.stats.put_times.add(time.perf_counter() - begin, len(sent))
        answer_of = self._answers.of
        for (peer, request, queue_id, unique_key, kind, dead), result in zip(
            sent, results, strict=True
        ):
            if dead is not None:
                self._dead_letters.count(dead, result)
            if not request.is_oneway:
                handle = self._recall_handle(result) if kind == _TIMED_SEND else None
                is_inner = kind == _INNER
                answer = answer_of(request, result, queue_id, unique_key, handle, is_inner)
                peer.answer(request, answer)

    def _recall_handle(self, result: PutResult) -> str | None:
        """Return the recall handle of a message that waits for its time, None for any other."""
        try:
            record = self._store.reads.record_at(result.physical_offset) if result.count else None
        except MqlakeError as error:
            # It is stored, so it is answered, and so are those that arrived with it.
            _log.error("no recall handle for a message: %s", error)
            return None
        if record is None or record.topic != TIMER_TOPIC:
            return None
        pairs = record.properties
        # The slot is the end of the time in which the message may be due, exclusive.
        due, topic = int(pairs[TIMER_OUT_MS]) + 1, pairs[REAL_TOPIC]
        broker_name = self._runtime.settings.broker_name
        return RecallHandle(topic, broker_name, due, pairs.get(UNIQ_KEY, "")).text


def _placed(topic: Topic, properties: bytes, queue_id: int) -> tuple[bytes, int]:
    """Return the properties and the queue of a message whose properties may choose a queue."""
    if PRIORITY_NAME in properties:
        _require_queue(topic)
        return placed(properties, queue_id, topic.write_queue_nums)
    return properties, queue_id


def _writable_queue(topic: Topic) -> int:
    _require_queue(topic)
    return any_queue(topic.write_queue_nums)


def _require_queue(topic: Topic) -> None:
    if topic.write_queue_nums <= 0:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{topic} has no queue to write")


def _batch(
    peer: Peer,
    request: Command,
    header: Header,
    topic: Topic,
    queue_id: int,
    stored: tuple[bytes, str],
) -> MessageBatch:
    """Args: `stored`: the properties and the unique key of the batch."""
    if header.topic.startswith(_RETRY):
        reason = f"batch request does not support retry group {header.topic}"
        raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, reason)
    properties, unique_key = stored
    return MessageBatch(
        topic=header.topic,
        body=without_dropped(bytes(request.body)),
        queue_id=queue_id,
        sys_flag=_flags(header, topic),
        born_timestamp=header.born_timestamp,
        born_host=peer.address,
        reconsume_times=header.reconsume_times or 0,
        encoded_properties=properties,
        longest_properties=LONGEST_SENT,
        # Clients that give the batch its own key can split it.
        is_inner=kind_of(topic).has_batches and unique_key in (header.properties or ""),
    )


def _flags(header: Header, topic: Topic) -> int:
    is_multi = topic.topic_filter_type == MULTI_TAG
    return header.sys_flag | sys_flag.MULTI_TAGS if is_multi else header.sys_flag


def _undelayed(properties: bytes) -> bytes:
    return edit(properties, (DELAY,), {DELAY: "0"})
