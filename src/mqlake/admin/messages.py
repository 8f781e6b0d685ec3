"""Messages: look them up, read queues, send one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import BrokerFailure, read_each
from mqlake.admin.topics import status
from mqlake.client.cluster import MasterBroker
from mqlake.errors import FormatError, MqlakeError
from mqlake.formats import record
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.properties import KEYS, TAGS, UNIQ_KEY, WAIT, encode_pairs
from mqlake.formats.record import Record
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Body
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.offsets import OffsetHeader, SearchOffsetHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, PullAnswerHeader, PullHeader
from mqlake.protocol.headers.query import QueryMessageHeader, ViewMessageHeader
from mqlake.protocol.headers.recall import RecallHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2, SendMessageResponseHeader
from mqlake.protocol.headers.transactions import ResumeCheckHeader
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.storage.clock import SystemClock

_GROUP = "TOOLS_CONSUMER"
_PRODUCERS = "TOOLS_PRODUCER"
_AT_ONCE = 32
_FOREVER = 2**63 - 1
_UNIQUE, _KEY = "U", "K"


async def by_id(admin: Admin, message_id: str) -> Record:
    """Return the message with an offset message id, which contains the broker's address.

    Raises:
        FormatError: the id is not an offset message id.
        RemotingError: the message does not exist.
        ConnectionFailedError: there is no broker at the address, perhaps because it has moved.
    """
    host, offset = decode_message_id(message_id)
    code, header = RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(offset=offset)
    try:
        answer = await admin.ask(host, code, header)
    except ConnectionFailedError as error:
        raise ConnectionFailedError(
            f"{error}: message id {message_id} contains this broker's address, and the broker "
            "cannot be reached there; if it has moved, ask by the unique key of the message"
        ) from None
    return record.decode(answer.body)


async def resume_check(admin: Admin, message_id: str) -> None:
    """Check a half message again whose producer never answered.

    Args:
        message_id: the offset message id in `TRANS_CHECK_MAX_TIME_TOPIC`, which contains the
            broker's address.

    Raises:
        FormatError: the id is not an offset message id.
        RemotingError: the half message does not exist.
    """
    host, _ = decode_message_id(message_id)
    header = ResumeCheckHeader(msg_id=message_id)
    await admin.ask(host, RequestCode.RESUME_CHECK_HALF_MESSAGE, header)


async def recall(admin: Admin, topic: str, broker: str, handle: str) -> None:
    """Recall a message with a delivery time before it is delivered.

    Args:
        handle: from the result of the send.

    Raises:
        RemotingError: the broker refuses; it recalls messages only if its setting
            `recallMessageEnable` is true.
    """
    address = (await admin.broker(broker)).address
    header = RecallHeader(topic=topic, recall_handle=handle)
    await admin.ask(address, RequestCode.RECALL_MESSAGE, header)


async def by_any_id(admin: Admin, topic: str | None, message_id: str) -> list[Record]:
    """Return the message with a unique key or, failing that, with an offset message id.

    Args:
        topic: the topic; without it, the id is an offset message id.

    Raises:
        ConnectionFailedError: without a topic: the id names a broker that cannot be reached.
    """
    found = await by_unique_key(admin, topic, message_id) if topic else None
    if found is None:
        try:
            found = await by_id(admin, message_id)
        except RemotingError:
            return []
        except ConnectionFailedError:
            if topic is None:
                raise
            return []  # A unique key may look like an id of a broker that never existed.
    return [found]


async def by_key(
    admin: Admin,
    topic: str,
    key: str,
    most: int = 64,
    begin: int = 0,
    end: int = _FOREVER,
    *,
    index_type: str = _KEY,
    missing: list[BrokerFailure] | None = None,
) -> list[Record]:
    """Return the messages of a topic with a key, oldest first.

    Args:
        begin, end: store times in milliseconds.
        index_type: "T" for a tag, "U" for a unique key.
        missing: gets the brokers whose messages are missing; None if all must answer.
    """
    header = QueryMessageHeader(
        topic=topic,
        key=key,
        max_num=most,
        begin_timestamp=begin,
        end_timestamp=end,
        index_type=index_type,
        is_unique_key=index_type == _UNIQUE,
    )
    brokers = await admin.brokers_of(topic)
    lists = await read_each(brokers, lambda each: keyed(admin, each.address, header), missing)
    found = [record for records in lists for record in records]
    return sorted(found, key=lambda each: each.store_timestamp)


async def keyed(admin: Admin, address: str, header: QueryMessageHeader) -> list[Record]:
    """Return the messages with a key that one broker has."""
    try:
        answer = await admin.ask(address, RequestCode.QUERY_MESSAGE, header)
    except RemotingError as error:
        if error.code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return []
    return _decode(answer.body)


async def by_unique_key(admin: Admin, topic: str, key: str) -> Record | None:
    """Return the message with a unique key, None if it does not exist."""
    found = await by_key(admin, topic, key, 1, index_type=_UNIQUE)
    return found[0] if found else None


async def read(
    admin: Admin,
    broker: MasterBroker,
    topic: str,
    queue_id: int,
    offset: int,
    most: int,
    *,
    tags: str = "*",
) -> list[Record]:
    """Return messages of a queue from a queue offset on, up to a maximum."""
    found: list[Record] = []
    following: int | None = offset
    while len(found) < most and following is not None:
        count = min(most - len(found), _AT_ONCE)
        records, following = await pull(admin, broker, topic, queue_id, following, count, tags=tags)
        found += records
    return found


async def pull(
    admin: Admin,
    broker: MasterBroker,
    topic: str,
    queue_id: int,
    offset: int,
    most: int,
    *,
    tags: str = "*",
) -> tuple[list[Record], int | None]:
    """Return messages of a queue from one request, and the queue offset where to continue.

    There may be fewer than the maximum, even none, before the end of the queue: the broker looks at
    a limited number of messages. The offset is None at the end.
    """
    header = PullHeader(
        consumer_group=_GROUP,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=most,
        sys_flag=HAS_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription=tags,
        expression_type="TAG",
    )
    answer = await admin.request(broker.address, RequestCode.PULL_MESSAGE, header)
    if answer.code == ResponseCode.PULL_NOT_FOUND:
        return [], None
    if answer.code not in _GOES_ON:
        raise RemotingError(answer.code, answer.remark or f"{broker.address}: {answer.code}")
    following = answer.header(PullAnswerHeader).next_begin_offset
    return _decode(answer.body), following if following > offset else None


_GOES_ON = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_OFFSET_MOVED,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
    )
)
"""Codes of answers that tell where to continue."""


async def of_queues(
    admin: Admin,
    topic: str,
    broker: str | None,
    queue_id: int | None,
    offset: int,
    most: int,
    *,
    tags: str = "*",
) -> list[Record]:
    """Return messages of all queues of a topic from an offset on, up to a maximum for each queue.

    Args:
        broker, queue_id: only of this broker, only of this queue.
    """
    found: list[Record] = []
    for queue in await status(admin, topic):
        if broker in (None, queue.broker_name) and queue_id in (None, queue.queue_id):
            at = await admin.broker(queue.broker_name)
            start = max(offset, queue.min_offset)
            found += await read(admin, at, topic, queue.queue_id, start, most, tags=tags)
    return found


async def of_topic(
    admin: Admin, topic: str, tags: str, begin: int | None, end: int | None, most: int
) -> list[Record]:
    """Return the messages of a topic by store time, up to a maximum, queue by queue.

    Args:
        begin, end: the range of store times, in milliseconds.
    """
    found: list[Record] = []
    for queue in await status(admin, topic):
        at = await admin.broker(queue.broker_name)
        offset = queue.min_offset
        if begin is not None:
            header = SearchOffsetHeader(topic=topic, queue_id=queue.queue_id, timestamp=begin)
            answer = await admin.ask(at.address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
            offset = answer.header(OffsetHeader).offset
        rest = most - len(found)
        records: list[Record] = []
        if rest:
            records = await read(admin, at, topic, queue.queue_id, offset, rest, tags=tags)
        found += [each for each in records if end is None or each.store_timestamp <= end]
    return found


async def by_offset(admin: Admin, topic: str, broker: str, queue_id: int, offset: int) -> Record:
    """Return the message at a queue offset.

    Raises:
        MqlakeError: there is no message at that offset.
    """
    found = await read(admin, await admin.broker(broker), topic, queue_id, offset, 1)
    if not found or found[0].queue_offset != offset:
        raise MqlakeError(f"topic {topic}, queue {queue_id}: no message at offset {offset}")
    return found[0]


async def send(
    admin: Admin,
    topic: str,
    body: bytes,
    *,
    keys: str | None = None,
    tags: str | None = None,
    broker: str | None = None,
    queue_id: int = -1,
    properties: Mapping[str, str] | None = None,
) -> SendMessageResponseHeader:
    """Send a message to a topic; to any of its brokers and queues unless they are given.

    Args:
        properties: further properties of the message.

    Raises:
        RemotingError: the broker refuses, or no broker has the topic.
    """
    found = await admin.broker(broker) if broker else await admin.broker_of(topic)
    given = {name: value for name, value in ((KEYS, keys), (TAGS, tags)) if value}
    pairs = {**(properties or {}), **given}
    pairs |= {UNIQ_KEY: os.urandom(16).hex().upper(), WAIT: "true"}
    header = SendMessageHeaderV2(
        producer_group=_PRODUCERS,
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=SystemClock().milliseconds(),
        flag=0,
        properties=encode_pairs(pairs).decode(),
        reconsume_times=0,
        unit_mode=False,
        batch=False,
    )
    answer = await admin.ask(found.address, RequestCode.SEND_MESSAGE_V2, header, body)
    return answer.header(SendMessageResponseHeader)


def _decode(body: Body) -> list[Record]:
    """Return the messages that a body contains consecutively."""
    found: list[Record] = []
    view, at = memoryview(body), 0
    while at < len(view):
        try:
            found.append(record.decode(view, at))
        except FormatError as error:
            raise MqlakeError(f"byte {at} of the broker's answer: {error}") from None
        at += found[-1].size
    return found
