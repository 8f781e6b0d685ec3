"""Sends to a broker that waits for the disk or for slaves."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane.choice import is_chosen
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests import simulated
from tests.broker.lane.test_received import switch
from tests.broker.live.observing import change
from tests.broker.running import Running, running
from tests.broker.send.bursts import QUEUES, mixed, mixed_batches, stored, told
from tests.broker.send.random_sends import (
    BATCH_FIELDS,
    KEY,
    TOPIC,
    batch,
    made,
    send,
    usual,
    usual_batch,
)
from tests.broker.send.streams import ask, warm
from tests.protocol.messages import SEND_FIELDS
from tests.replication.slaves import Slave, close_all, end, server
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

COUNT = 60
FILE = 1 << 20
PATIENT: dict[str, object] = {
    "brokerRole": "SYNC_MASTER",
    "slaveTimeout": 60_000,
    "haHousekeepingInterval": 3_600_000,
    "mappedFileSizeCommitLog": FILE,
}
_BATCH = RequestCode.SEND_BATCH_MESSAGE
Make = Callable[[random.Random, int], bytes]


def streams(make: Make, count: int = COUNT) -> bytes:
    return b"".join(make(random.Random(number), number) for number in range(count))


async def acknowledge(slave: Slave) -> None:
    """Acknowledge all that comes."""
    while True:
        offset, body = await slave.data()
        slave.report(offset + len(body))


@asynccontextmanager
async def followed(path: Path, **settings: object) -> AsyncGenerator[tuple[Running, Slave]]:
    """Run a master whose lane is loaded, with a slave that has all; nobody acknowledges more."""
    async with running(path, None, **(PATIENT | settings)) as broker:
        try:
            slave = await Slave.connect(server(broker).address)
            slave.report(0)
            await until(lambda: server(broker).in_sync == 1)
            following = asyncio.create_task(acknowledge(slave))
            await warm(broker)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            yield broker, slave
        finally:
            await close_all()


def messages(stream: bytes) -> int:
    """Return how many messages sends have."""
    sends = FrameReader(Limits()).feed(stream)
    return sum(
        len(list(decode_batch(bytes(each.body)))) if each.code == _BATCH else 1
        for each in sends
        if isinstance(each, Command)
    )


async def received(broker: Running, slave: Slave) -> None:
    """Return once a slave has the whole log."""
    while True:
        offset, body = await slave.data()
        if offset + len(body) == end(broker):
            return


def puts(broker: Running) -> int:
    return sum(broker.state.store.offsets.values())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("make", "count"), [(mixed, 600), (mixed_batches, 200)])
def test_sends_that_wait_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make, count: int, seed: int
) -> None:
    stream = make(random.Random(seed), count)

    async def run(path: Path) -> tuple[Any, ...]:
        async with followed(path) as (broker, slave):
            following = asyncio.create_task(acknowledge(slave))
            answers = await ask(broker, stream, count)
            following.cancel()
            records = [
                stored(one) for queue in range(QUEUES) for one in broker.records(TOPIC, queue)
            ]
            return {opaque: told(answer) for opaque, answer in answers.items()}, records

    with monkeypatch.context() as patch:
        taken = switch(patch, on=True)
        in_lane = asyncio.run(run(tmp_path / "lane"))
        assert sum(taken) > 0
    switch(monkeypatch, on=False)
    assert in_lane == asyncio.run(run(tmp_path / "one by one"))


@pytest.mark.parametrize("make", [usual, usual_batch])
def test_sends_are_answered_once_a_slave_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    taken = switch(monkeypatch, on=True)
    stream = streams(make)

    async def run() -> None:
        async with followed(tmp_path) as (broker, slave):
            before, taken_before = puts(broker), sum(taken)
            asked = asyncio.ensure_future(ask(broker, stream, COUNT))
            await until(lambda: puts(broker) == before + messages(stream))
            await received(broker, slave)
            slave.report(end(broker) - 1)
            await until(lambda: server(broker).connections[0].lacks == 1)
            assert not asked.done()
            assert sum(taken) > taken_before
            slave.report(end(broker))
            answers = await asked
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}
            # Nobody waits any more.
            await until(lambda: not any(peer.in_flight for peer in broker.broker.peers))

    asyncio.run(run())


@pytest.mark.parametrize("kind", list(Serialization))
def test_a_single_send_is_answered_once_a_slave_has_it(tmp_path: Path, kind: Serialization) -> None:
    frame = made(kind, SEND_FIELDS | {"b": TOPIC, "i": KEY}, b"body", 1)

    async def run() -> None:
        async with followed(tmp_path) as (broker, slave):
            before = puts(broker)
            asked = asyncio.ensure_future(ask(broker, frame, 1))
            await until(lambda: puts(broker) == before + 1)
            await received(broker, slave)
            slave.report(end(broker) - 1)
            await until(lambda: server(broker).connections[0].lacks == 1)
            assert not asked.done()
            slave.report(end(broker))
            assert (await asked)[1].code == ResponseCode.SUCCESS

    asyncio.run(run())


@pytest.mark.parametrize("make", [usual, usual_batch])
def test_sends_that_slaves_lack_are_answered_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    """Some have arrived at the slave, and those are acknowledged."""
    stream = streams(make)

    async def run(path: Path) -> tuple[dict[int, tuple[Any, ...]], int]:
        async with followed(path) as (broker, slave):
            start = end(broker)
            before = puts(broker)
            asked = asyncio.ensure_future(ask(broker, stream, COUNT))
            await until(lambda: puts(broker) == before + messages(stream))
            await received(broker, slave)
            half = start + (end(broker) - start) // 2
            slave.report(half)
            await until(lambda: server(broker).connections[0].acknowledged == half)
            await change(broker, slaveTimeout=50)
            answers = await asked
            for answer in answers.values():
                ids = answer.fields["msgId"].split(",")
                is_sure = int(ids[-1][-16:], 16) < half
                if answer.code == ResponseCode.SUCCESS:
                    assert is_sure
                else:
                    assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
            counts = Counter(answer.code for answer in answers.values())
            assert counts[ResponseCode.SUCCESS] > 5
            assert counts[ResponseCode.FLUSH_SLAVE_TIMEOUT] > 5
            late = broker.state.busy.counts["SLAVE_TIMEOUT"]
            assert late == counts[ResponseCode.FLUSH_SLAVE_TIMEOUT]
            return {opaque: _without_time(each) for opaque, each in answers.items()}, half

    with monkeypatch.context() as patch:
        taken = switch(patch, on=True)
        in_lane = asyncio.run(run(tmp_path / "lane"))
        assert sum(taken) > 0
    switch(monkeypatch, on=False)
    assert in_lane == asyncio.run(run(tmp_path / "one by one"))


def _without_time(answer: Command) -> tuple[Any, ...]:
    code, remark, *others = told(answer)
    return code, remark.partition(" after ")[0], *others


def test_without_slaves_each_is_answered_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = switch(monkeypatch, on=True)

    async def run() -> None:
        async with running(tmp_path, None, **PATIENT) as broker:
            await warm(broker)
            answers = await ask(broker, streams(usual), COUNT)
            codes = {answer.code for answer in answers.values()}
            assert codes == {ResponseCode.SLAVE_NOT_AVAILABLE}

    asyncio.run(run())
    assert sum(taken) == 0


@pytest.mark.parametrize("every", [1, 7])
def test_sends_that_do_not_ask_for_slaves_do_not_wait(tmp_path: Path, every: int) -> None:
    def make(number: int) -> bytes:
        waits = "false" if number % every == 0 else "true"
        return send(SEND_FIELDS | {"i": f"{KEY}WAIT\x01{waits}\x02"}, b"body", number)

    stream = b"".join(make(number) for number in range(COUNT))
    # It is not acknowledged before what was put in the same call, so ask for each by itself.
    unwaited = [make(number) for number in range(COUNT) if number % every == 0]

    async def run() -> None:
        async with followed(tmp_path) as (broker, slave):
            for frame in unwaited:
                (answer,) = (await ask(broker, frame, 1)).values()
                assert answer.code == ResponseCode.SUCCESS
            if every == 1:
                answers = await ask(broker, stream, COUNT)
            else:
                asked = asyncio.ensure_future(ask(broker, stream, COUNT))
                await until(lambda: puts(broker) >= 1 + COUNT + len(unwaited))
                assert not asked.done()
                following = asyncio.create_task(acknowledge(slave))
                answers = await asked
                following.cancel()
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}

    asyncio.run(run())


def test_so_many_wait_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = switch(monkeypatch, on=True)
    most, part, asked_for = 800, 32, 1500

    async def run() -> None:
        async with followed(tmp_path, sendThreadPoolQueueCapacity=most) as (broker, slave):
            asked = asyncio.ensure_future(ask(broker, streams(usual, asked_for), asked_for))
            busy = broker.state.busy.counts
            await until(lambda: puts(broker) - 1 + busy["WAITING_FOR_DISK"] == asked_for)
            following = asyncio.create_task(acknowledge(slave))
            answers = await asked
            following.cancel()
            counts = Counter(answer.code for answer in answers.values())
            refused = counts.pop(ResponseCode.SERVICE_NOT_AVAILABLE)
            assert asked_for - most - part <= refused <= asked_for - most
            assert set(counts) == {ResponseCode.SUCCESS}
            assert puts(broker) == 1 + asked_for - refused

    asyncio.run(run())
    assert sum(taken) > 0


def test_nothing_waits_for_a_slave_if_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = switch(monkeypatch, on=True)

    async def run() -> None:
        async with running(tmp_path, None, **PATIENT, inSyncReplicas=1) as broker:
            await warm(broker)
            answers = await ask(broker, streams(usual), COUNT)
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}

    simulated.run(run())
    assert sum(taken) > 0


def test_long_answers_that_wait_count_as_held(tmp_path: Path) -> None:
    count, messages_of = 20, 300
    frame = batch(BATCH_FIELDS, encode_batch([(0, b"", b"")] * messages_of))
    stream = b"".join(frame[:13] + number.to_bytes(4) + frame[17:] for number in range(count))

    async def run() -> None:
        async with followed(tmp_path) as (broker, slave):
            before = puts(broker)
            asked = asyncio.ensure_future(ask(broker, stream, count))
            await until(lambda: puts(broker) == before + count * messages_of)
            (size,) = (peer.measure() for peer in broker.broker.peers if peer.in_flight)
            assert size > count * messages_of * len(",C0A80001000000000000000000000000")
            following = asyncio.create_task(acknowledge(slave))
            await asked
            following.cancel()
            await until(lambda: not any(p.in_flight or p.bodies for p in broker.broker.peers))

    asyncio.run(run())
