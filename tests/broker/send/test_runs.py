"""Many sends that come at once are stored and answered as each would be by itself."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.send.runs import Runs
from mqlake.formats.record import Record
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames
from tests import simulated
from tests.broker.running import running, to
from tests.broker.send.random_runs import (
    BATCH_FIELDS,
    KEY,
    TOPIC,
    UNUSUAL,
    UNUSUAL_IN_BATCHES,
    batch,
    body_of_batch,
    send,
    usual,
    usual_batch,
)
from tests.broker.send.streams import ask, warm
from tests.protocol.messages import SEND_FIELDS
from tests.store.record_crcs import without_crc

QUEUES = 4


def switch(monkeypatch: pytest.MonkeyPatch, *, on: bool) -> list[int]:
    """Let runs be taken or not; return the list of what they take, in bytes."""
    taken: list[int] = []

    def patch(name: str) -> None:
        usual = getattr(Runs, name)

        def take(runs: Runs, peer: Peer, frames: Frames) -> int:
            at = frames.at
            count = usual(runs, peer, frames) if on else 0
            taken.append(frames.at - at)
            return count

        monkeypatch.setattr(Runs, name, take)

    patch("take")
    patch("take_batches")
    return taken


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
    frames: list[bytes] = []
    for opaque in range(count):
        data = usual_batch(dice, opaque)
        if dice.random() < 0.1:
            name = dice.choice(list(UNUSUAL_IN_BATCHES))
            fields = plain_enough(BATCH_FIELDS | {name: dice.choice(UNUSUAL_IN_BATCHES[name])})
            data = batch(fields, body_of_batch(dice), opaque)
        elif dice.random() < 0.1:
            data = usual(dice, opaque)
        elif dice.random() < 0.1:
            data = batch(BATCH_FIELDS, body_of_batch(dice)[:-1], opaque)
        frames.append(data)
    return b"".join(frames)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make", "count"), [(mixed, 1500), (mixed_batches, 400)])
def test_runs_change_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[random.Random, int], bytes],
    count: int,
    seed: int,
) -> None:
    stream = make(random.Random(seed), count)

    async def run(path: Path) -> tuple[Any, ...]:
        async with running(path) as broker:
            await warm(broker)
            answers = await ask(broker, stream, count)
            records = [
                stored(one) for queue in range(QUEUES) for one in broker.records(TOPIC, queue)
            ]
            log = broker.state.store.core.log.end
        return {opaque: told(answer) for opaque, answer in answers.items()}, records, log

    with monkeypatch.context() as patch:
        taken = switch(patch, on=True)
        with_runs = simulated.run(run(tmp_path / "runs"))
        assert sum(taken) > len(stream) / 4
    switch(monkeypatch, on=False)
    for found, expected in zip(with_runs, simulated.run(run(tmp_path / "one by one")), strict=True):
        assert found == expected
    codes = {code for code, *_ in with_runs[0].values()}
    assert {ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR} <= codes


def test_batches_stay_whole_where_files_end(tmp_path: Path) -> None:
    size = 20_000

    async def run() -> None:
        async with running(tmp_path, mappedFileSizeCommitLog=size) as broker:
            await warm(broker)
            dice = random.Random(5)
            stream = b"".join(usual_batch(dice, opaque) for opaque in range(100))
            answers = await ask(broker, stream, 100)
            assert {answer.code for answer in answers.values()} == {ResponseCode.SUCCESS}
            for answer in answers.values():
                places = [int(one[-16:], 16) for one in answer.fields["msgId"].split(",")]
                assert places[0] // size == places[-1] // size
            assert broker.state.store.core.log.end > 5 * size

    simulated.run(run())


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
            assert broker.state.store.core.log.end > 3 * 20_000

    simulated.run(run())


def test_settings_that_change_count_for_the_next_run(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            live = broker.runtime.live
            live.replace(msgspec.structs.replace(live.now, region_id="Elsewhere"))
            await warm(broker)
            dice = random.Random(5)
            answers = await ask(broker, b"".join(usual(dice, each) for each in range(50)), 50)
            assert {one.fields["MSG_REGION"] for one in answers.values()} == {"Elsewhere"}
            assert all(
                record.properties["MSG_REGION"] == "Elsewhere"
                for queue in range(QUEUES)
                for record in broker.records(TOPIC, queue)[1:]
            )

    simulated.run(run())


def test_a_store_that_takes_no_messages_says_so_of_each(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            broker.state.store.core._appender.set_not_writable("full")  # pyright: ignore[reportPrivateUsage]
            dice = random.Random(5)
            answers = await ask(broker, b"".join(usual(dice, each) for each in range(50)), 50)
            codes = {answer.code for answer in answers.values()}
            assert codes == {ResponseCode.SERVICE_NOT_AVAILABLE}

    simulated.run(run())


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

    simulated.run(run())
    assert sum(taken) == 0
