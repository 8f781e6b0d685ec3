"""What sends lead to: answers, records and counts, so that two brokers can be compared."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from mqlake.formats.host import encode_host
from mqlake.formats.record import Record
from mqlake.protocol.command import Command, Serialization
from tests.broker.running import PATIENCE, Running
from tests.broker.send.random_sends import (
    BATCH_FIELDS,
    KEY,
    TOPIC,
    UNUSUAL,
    UNUSUAL_IN_BATCHES,
    USUAL,
    batch,
    body_of_batch,
    hostile_body,
    made,
    random_fields,
    send,
    usual,
    usual_batch,
)
from tests.protocol.messages import SEND_FIELDS
from tests.store.record_crcs import without_crc

QUEUES = 4
TOPICS = (TOPIC, "Others")
KINDS = tuple(Serialization)


def opaque_of(frame: bytes) -> int:
    if frame[4] == Serialization.ROCKETMQ:
        return int.from_bytes(frame[13:17])
    return int(frame.partition(b'"opaque":')[2].partition(b",")[0])


def told(answer: Command) -> tuple[Any, ...]:
    fields = dict(answer.fields)
    remark = re.sub(r"127.0.0.1:\d+", "address", answer.remark or "")
    if "recallHandle" in fields:
        fields["recallHandle"] = ""  # it has the time of delivery: another one with each run
    return answer.code, remark, fields.pop("msgId", "")[-16:], fields


def stored(record: Record) -> tuple[Any, ...]:
    return (
        *(record.physical_offset, record.queue_offset, record.queue_id, record.body),
        *(without_crc(record.properties), record.flag, record.sys_flag, record.reconsume_times),
        *(record.topic, record.born_host.partition(":")[0]),
    )


def plain_enough(fields: dict[str, str]) -> dict[str, str]:
    """Leave out what is answered in another way each time."""
    queue = "0" if fields["e"] == "-1" else fields["e"]  # -1: to any queue
    # Without a key of its own a message gets one.
    return fields | {"e": queue, "i": fields["i"] if "UNIQ_KEY\x01AB" in fields["i"] else KEY}


def mixed(dice: random.Random, count: int) -> bytes:
    """Return sends of which some are unusual: bad, of unknown topics, delayed, not alike."""
    frames: list[bytes] = []
    for opaque in range(count):
        data = usual(dice, opaque)
        if dice.random() < 0.05:
            name = dice.choice(list(UNUSUAL))
            fields = SEND_FIELDS | {"i": KEY, name: dice.choice(UNUSUAL[name])}
            data = send(plain_enough(fields), b"x", opaque)
        frames.append(data)
    return b"".join(frames)


def mixed_batches(dice: random.Random, count: int) -> bytes:
    """Return batches of which some are unusual, and single messages between them."""
    return b"".join(random_batch(dice, 1, opaque) for opaque in range(count))


def random_batch(dice: random.Random, kind: int, opaque: int) -> bytes:
    """Return a batch, perhaps an unusual one, or a single message."""
    if dice.random() < 0.1:
        name = dice.choice(list(UNUSUAL_IN_BATCHES))
        fields = plain_enough(BATCH_FIELDS | {name: dice.choice(UNUSUAL_IN_BATCHES[name])})
        return batch(fields, body_of_batch(dice), opaque, kind)
    if dice.random() < 0.1:
        return made(kind, random_fields(dice, USUAL), dice.randbytes(40), opaque)
    if dice.random() < 0.1:
        return batch(BATCH_FIELDS, hostile_body(dice), opaque, kind)
    return usual_batch(dice, opaque, kind)


async def ask_bursts(broker: Running, bursts: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Return the frames that answer these, in their order; those of a burst are sent together."""
    host, port = broker.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: list[bytes] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for burst in bursts:
                writer.write(b"".join(burst))
                for _ in burst:
                    length = await reader.readexactly(4)
                    answers.append(length + await reader.readexactly(int.from_bytes(length)))
    finally:
        writer.close()
    return answers


def random_frame(dice: random.Random, kind: int, opaque: int) -> bytes:
    """Return a send, perhaps an unusual one: bad, of an unknown topic, delayed."""
    fields = random_fields(dice, USUAL) | {"b": dice.choice(TOPICS)}
    if dice.random() < 0.2:
        name = dice.choice(list(UNUSUAL))
        fields |= {name: dice.choice(UNUSUAL[name])}
    if "TIMER_DELAY" in fields["i"]:  # Its answer has the time of delivery.
        fields["i"] = KEY
    body = dice.randbytes(dice.choice((0, 1, 4, 200, 70_000) if dice.random() < 0.1 else (1, 90)))
    return made(kind, plain_enough(fields), body, opaque)


def in_bursts(
    dice: random.Random, count: int, draw: Callable[[random.Random, int, int], bytes] = random_frame
) -> list[list[bytes]]:
    bursts, opaque = list[list[bytes]](), 0
    while opaque < count:
        kind, size = dice.choice(KINDS), dice.choice((1, 1, 1, 1, 1, 2, 4))
        bursts.append([draw(dice, kind, opaque + number) for number in range(size)])
        opaque += size
    return bursts


def without_address(answer: bytes, broker: Running) -> bytes:
    """Leave out of an answer what differs with the ports of the broker and of the client."""
    host = encode_host(broker.address).hex().upper().encode()
    assert b"msgId" not in answer or host in answer
    text = re.sub(rb"127\.0\.0\.1:\d+", b"address", answer[8:].replace(host, b"host"))
    return answer[4:5] + text


def counts(broker: Running) -> tuple[Any, ...]:
    put_times: Any = broker.state.stats.put_times
    server: Any = broker.broker
    ends = broker.state.store.offsets
    return dict(ends), sum(put_times._counts), server._server.counts, broker.state.busy.counts


async def outcome(broker: Running, bursts: Sequence[Sequence[bytes]]) -> tuple[Any, ...]:
    """Return what bursts of sends lead to."""
    answers = await ask_bursts(broker, bursts)
    records = [
        stored(one)
        for topic in TOPICS
        for queue in range(QUEUES)
        for one in broker.records(topic, queue)
    ]
    # A refusal is answered before the sends that wait for the end of the read.
    found = {opaque_of(answer): without_address(answer, broker) for answer in answers}
    return found, records, broker.state.store.core.log.end, counts(broker)
