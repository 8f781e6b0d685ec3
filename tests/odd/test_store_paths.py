"""What a store accepts comes out of it again, byte for byte, on whatever way it takes.

Every message has a queue of its own: one record must be there in the end, or none if it was
refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest

from mqlake.formats import sys_flag
from mqlake.formats.message_batch import encode_batch
from mqlake.jobs.convert.to_kafka import convert_to_kafka
from mqlake.jobs.convert.to_rocketmq import convert_to_rocketmq
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.store.append.checks import Refusal, encode_properties
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.delivery.transactions import EndStatus
from mqlake.store.reader import StoreReader
from tests.odd.sent import COUNT, SEEDS
from tests.odd.world import GROUP, World, drawn, put
from tests.query.store.rows import batch_rows

ENGINE = LocalEngine(1)


def room_for_delay(message: Message, prefix: bytes) -> Message:
    """Return a message with encoded properties, those of `prefix` first."""
    try:
        data = encode_properties(message)
    except Refusal:
        return message
    return msgspec.structs.replace(message, encoded_properties=prefix + data)


def put_many(world: World, messages: Sequence[Message], dice: Random) -> None:
    todo = list(messages)
    while todo:
        some = [todo.pop() for _ in range(min(len(todo), dice.choice((1, 8, 20))))]
        for message, result in zip(some, world.store.puts.put_many(some), strict=True):
            world.note(message, result)


def put_batch(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        try:
            data = encode_properties(message)
        except Refusal:
            continue
        # A batch has flag, body and properties of a message, and the rest for all of them.
        alone = Message(
            message.topic,
            message.body,
            queue_id=message.queue_id,
            flag=message.flag,
            encoded_properties=data,
            born_timestamp=message.born_timestamp,
            born_host=message.born_host,
        )
        body = encode_batch([(message.flag, message.body, data)])
        batch = MessageBatch(
            message.topic,
            body,
            message.queue_id,
            born_timestamp=message.born_timestamp,
            born_host=message.born_host,
        )
        world.attempt(alone, lambda _, batch=batch: world.store.puts.put_batch(batch))


def delay(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        level = dice.choice((1, 2, 3))
        world.attempt(room_for_delay(message, b"DELAY\x01%d\x02" % level), world.store.puts.put)
    world.pass_time(15)


def timer(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        when = b"TIMER_DELAY_SEC\x01%d\x02" % dice.choice((1, 4, 9))
        world.attempt(room_for_delay(message, when), world.store.puts.put)
    world.pass_time(15)


def commit(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        half = world.attempt(message, lambda one: world.store.transactions.prepare(one, GROUP))
        if half.is_ok:
            end(world, half.physical_offset, half.queue_offset)


def check_back(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        # A half that was born longer ago than `fileReservedTime` is not asked for, but set aside.
        born = max(message.born_timestamp, world.clock.milliseconds())
        young = msgspec.structs.replace(message, born_timestamp=born)
        world.attempt(young, lambda one: world.store.transactions.prepare(one, GROUP))
    for _ in range(3):
        # The last question counts: each is about a half that was put again.
        world.asked.clear()
        world.pass_time(31)
    asked = {question.queue_id: question for question in world.asked}
    assert len(asked) == len(world.accepted)
    for question in asked.values():
        end(world, question.half.physical_offset, question.half.queue_offset)


def end(world: World, physical_offset: int, queue_offset: int) -> None:
    ended = world.store.transactions.end(
        physical_offset, queue_offset, GROUP, commit=True, is_answer=True
    )
    assert ended.status is EndStatus.OK, ended


PATHS = {path.__name__: path for path in (put, put_many, put_batch, delay, timer, commit)}
PATHS["check_back"] = check_back


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("path", PATHS)
def test_what_is_accepted_comes_out(tmp_path: Path, path: str, seed: int) -> None:
    dice = Random(f"{path} {seed}")
    world = World(tmp_path / "store")
    PATHS[path](world, drawn(dice, COUNT), dice)
    world.check(world.store, path)
    assert len(world.accepted) > COUNT // 2

    # A process crash: the bytes as they are, without a clean stop.
    killed = tmp_path / "killed"
    shutil.copytree(world.path, killed)
    recovered = world.open(killed)
    world.check(recovered, "recovered")
    assert recovered.log.end == world.store.log.end
    recovered.close()
    world.store.close()
    for place in killed, world.path:
        report = verify(place, ENGINE)
        assert report.ok, report.damage
    reopened = world.open(killed)
    world.check(reopened, "reopened")
    reopened.close()

    check_rebuilt(world.path, tmp_path / "rebuilt")
    check_readers(world)


def check_rebuilt(path: Path, out: Path) -> None:
    rebuild(path, ENGINE, out=out)
    for folder in "consumequeue", "index":
        assert contents(out / folder) == contents(path / folder)


def contents(folder: Path) -> dict[str, bytes] | list[bytes]:
    """Return the files by name; those of the index, which are named by the time, in their order."""
    files = {
        str(file.relative_to(folder)): file.read_bytes().rstrip(b"\0")
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    return list(files.values()) if folder.name == "index" else files


def check_readers(world: World) -> None:
    """Check what a reader of the files and the Spark source say of each message."""
    rows = {(row["topic"], row["queueId"]): row for row in batch_rows(world.path)}
    with StoreReader.open(world.path) as reader:
        for number, sent in world.accepted.items():
            topic = sent.message.topic
            (found,) = reader.get(topic, number, 0, 10).records
            assert found.body == sent.message.body
            row = rows[topic, number]
            assert row["body"] == sent.message.body
            assert row["properties"] == found.properties
            assert row["tags"] == found.tags
            assert row["keys"] == list(found.keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_converted_to_kafka_and_back(tmp_path: Path, seed: int) -> None:
    dice = Random(f"convert {seed}")
    world = World(tmp_path / "store")
    put(world, drawn(dice, COUNT, of_clients=True), dice)
    world.store.close()

    convert_to_kafka(world.path, ENGINE, out=tmp_path / "logs")
    convert_to_rocketmq(tmp_path / "logs", ENGINE, out=tmp_path / "again")

    with StoreReader.open(world.path) as before, StoreReader.open(tmp_path / "again") as after:
        for number, sent in world.accepted.items():
            topic = sent.message.topic
            if "|" in topic or "%" in topic:  # no topic of Kafka's
                continue
            (old,), (new,) = (one.get(topic, number, 0, 10).records for one in (before, after))
            assert new.body == old.body
            without = {"__CRC32#"}
            assert {k: v for k, v in new.properties.items() if k not in without} == {
                k: v for k, v in old.properties.items() if k not in without
            }
            assert new.sys_flag & ~sys_flag.STORE_HOST_V6 == old.sys_flag & ~sys_flag.STORE_HOST_V6
    assert verify(tmp_path / "again", ENGINE).ok
