"""Many sends that come at once are stored and answered as each would be by itself."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.send.runs import Runs
from mqlake.formats.record import Record
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command
from mqlake.remoting.connection import Peer
from mqlake.remoting.frames import FrameReader
from mqlake.remoting.limits import Limits
from tests.broker.running import PATIENCE, Running, running, to
from tests.remoting.messages import SEND_FIELDS
from tests.remoting.runs import KEY, TOPIC, UNUSUAL, send, usual

TAKE = Runs.take
QUEUES = 4


def switch(monkeypatch: pytest.MonkeyPatch, *, on: bool) -> list[int]:
    """Let runs be taken or not; return the list of what they take, in bytes."""
    taken: list[int] = []

    def take(runs: Runs, peer: Peer, data: bytes, at: int) -> int:
        end = TAKE(runs, peer, data, at) if on else at
        taken.append(end - at)
        return end

    monkeypatch.setattr(Runs, "take", take)
    return taken


async def ask(broker: Running, stream: bytes, wanted: int) -> dict[int, Command]:
    """Write it all at once on a connection of its own; return the answers by their opaque."""
    host, port = broker.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: dict[int, Command] = {}
    frames = FrameReader(Limits())
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(stream)
            while len(answers) < wanted:
                data = await reader.read(1 << 16)
                assert data, f"closed after {len(answers)} answers"
                answers |= {answer.opaque: answer for answer in frames.feed(data)}
    finally:
        writer.close()
    return answers


async def warm(broker: Running) -> None:
    """Make the topic, and wait until runs can be taken."""
    await broker.send(to(TOPIC, properties=KEY))
    take: Any = broker.parts.runs[RequestCode.SEND_MESSAGE_V2]
    await asyncio.wait_for(take.__self__.load(), PATIENCE)


def told(answer: Command) -> tuple[Any, ...]:
    fields = dict(answer.fields)
    remark = re.sub(r"127.0.0.1:\d+", "address", answer.remark or "")
    return answer.code, remark, fields.pop("msgId", "")[-16:], fields


def stored(record: Record) -> tuple[Any, ...]:
    return (
        *(record.physical_offset, record.queue_offset, record.queue_id, record.body),
        *(record.properties, record.flag, record.sys_flag, record.reconsume_times),
        *(record.topic, record.born_host.partition(":")[0]),
    )


def mixed(dice: random.Random, count: int) -> bytes:
    """Return sends of which some are unusual: bad, of unknown topics, delayed, not alike."""
    frames: list[bytes] = []
    for opaque in range(count):
        data = usual(dice, opaque)
        if dice.random() < 0.05:
            name = dice.choice(list(UNUSUAL))
            fields = SEND_FIELDS | {"i": KEY, name: dice.choice(UNUSUAL[name])}
            if fields["e"] == "-1":
                fields["e"] = "0"  # to any queue
            # without a key of its own a message gets one, which differs each time
            fields["i"] = fields["i"] if "UNIQ_KEY\x01AB" in fields["i"] else KEY
            data = send(fields, b"x", opaque)
        frames.append(data)
    return b"".join(frames)


@pytest.mark.parametrize("seed", range(3))
def test_runs_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    stream = mixed(random.Random(seed), 1500)

    async def run(path: Path) -> tuple[Any, ...]:
        async with running(path) as broker:
            await warm(broker)
            answers = await ask(broker, stream, 1500)
            records = [
                stored(one) for queue in range(QUEUES) for one in broker.records(TOPIC, queue)
            ]
            log = broker.parts.store.core.log.end
        return {opaque: told(answer) for opaque, answer in answers.items()}, records, log

    taken = switch(monkeypatch, on=True)
    with_runs = asyncio.run(run(tmp_path / "runs"))
    assert sum(taken) > len(stream) / 2
    switch(monkeypatch, on=False)
    for found, expected in zip(with_runs, asyncio.run(run(tmp_path / "one by one")), strict=True):
        assert found == expected
    codes = {code for code, *_ in with_runs[0].values()}
    assert {ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR} <= codes


def test_a_run_goes_on_in_the_next_file(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, mappedFileSizeCommitLog=20_000) as broker:
            await warm(broker)
            dice = random.Random(5)
            stream = b"".join(usual(dice, opaque) for opaque in range(400))
            answers = await ask(broker, stream, 400)
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}
            counts = [len(broker.records(TOPIC, queue)) for queue in range(QUEUES)]
            assert sum(counts) == 401
            assert broker.parts.store.core.log.end > 3 * 20_000

    asyncio.run(run())


def test_settings_that_change_count_for_the_next_run(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            broker.parts.settings = msgspec.structs.replace(
                broker.parts.settings, region_id="Elsewhere"
            )
            for function in broker.parts.on_settings:
                function()
            await warm(broker)
            dice = random.Random(5)
            answers = await ask(broker, b"".join(usual(dice, each) for each in range(50)), 50)
            assert {one.fields["MSG_REGION"] for one in answers.values()} == {"Elsewhere"}
            assert all(
                record.properties["MSG_REGION"] == "Elsewhere"
                for queue in range(QUEUES)
                for record in broker.records(TOPIC, queue)[1:]
            )

    asyncio.run(run())


def test_a_store_that_takes_no_messages_says_so_of_each(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            broker.parts.store.core._appender.set_not_writable("full")  # pyright: ignore[reportPrivateUsage]
            dice = random.Random(5)
            answers = await ask(broker, b"".join(usual(dice, each) for each in range(50)), 50)
            codes = {answer.code for answer in answers.values()}
            assert codes == {ResponseCode.SERVICE_NOT_AVAILABLE}

    asyncio.run(run())


def test_under_sync_flush_each_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = switch(monkeypatch, on=True)

    async def run() -> None:
        async with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
            await broker.send(to(TOPIC, properties=KEY))
            dice = random.Random(5)
            answers = await ask(broker, b"".join(usual(dice, each) for each in range(50)), 50)
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}

    asyncio.run(run())
    assert sum(taken) == 0
