"""Sends that a transport has received are stored and answered as each would be by itself.

Connections of simulated loops have no sockets, as those with TLS: the lane serves their bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.lane import lane
from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.lane.kernel import LaneKernel
from mqlake.broker.lane.lane import Lane
from mqlake.protocol.codes import ResponseCode
from mqlake.remoting.connection import Peer
from mqlake.remoting.stream.frame_reader import Frames
from tests import simulated
from tests.broker.running import running
from tests.broker.send.bursts import QUEUES, in_bursts, mixed, mixed_batches, outcome, stored, told
from tests.broker.send.random_sends import TOPIC, usual, usual_batch
from tests.broker.send.streams import ask, warm

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


def switch(monkeypatch: pytest.MonkeyPatch, *, on: bool) -> list[int]:
    """Let received sends be taken or not; return the list of what is taken, in bytes."""
    taken, usual = list[int](), Lane.take

    def take(own: Lane, peer: Peer, frames: Frames) -> int:
        at = frames.at
        count = usual(own, peer, frames) if on else 0
        taken.append(frames.at - at)
        return count

    monkeypatch.setattr(Lane, "take", take)
    return taken


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make", "count"), [(mixed, 1500), (mixed_batches, 400)])
def test_streams_change_nothing(
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
        in_lane = simulated.run(run(tmp_path / "lane"))
        assert sum(taken) > len(stream) / 8
    switch(monkeypatch, on=False)
    for found, expected in zip(in_lane, simulated.run(run(tmp_path / "one by one")), strict=True):
        assert found == expected
    codes = {code for code, *_ in in_lane[0].values()}
    assert {ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR} <= codes


@pytest.mark.parametrize("seed", range(3))
def test_bursts_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    bursts = in_bursts(random.Random(seed), 1500)

    async def run(path: Path) -> tuple[Any, ...]:
        async with running(path) as broker:
            await warm(broker)
            return await outcome(broker, bursts)

    with monkeypatch.context() as patch:
        taken = switch(patch, on=True)
        in_lane = simulated.run(run(tmp_path / "lane"))
        assert sum(map(bool, taken)) > 200
    switch(monkeypatch, on=False)
    for found, expected in zip(in_lane, simulated.run(run(tmp_path / "otherwise")), strict=True):
        assert found == expected


def test_the_first_send_is_served_however_long_its_topic_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = switch(monkeypatch, on=True)
    monkeypatch.setattr(lane, "_SHORT_TURN", 0)
    frame = usual(random.Random(1), 1)

    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            for _ in range(3):
                await ask(broker, frame, 1)
            assert [each for each in taken if each] == [len(frame)] * 3

    simulated.run(run())


def test_a_lane_that_fails_is_used_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the connection over which it failed is closed."""

    def fail(*_: object) -> tuple[int, int]:
        raise ValueError("broken")

    monkeypatch.setattr(LaneKernel, "serve_bytes", fail)

    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            with pytest.raises(AssertionError, match="closed after 0 answers"):
                await ask(broker, usual(random.Random(1), 1), 1)
            answers = await ask(broker, usual(random.Random(1), 2), 1)
            assert answers[2].code == ResponseCode.SUCCESS

    simulated.run(run())


def test_batches_stay_whole_where_files_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, taken = 20_000, switch(monkeypatch, on=True)

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
            assert sum(taken) > len(stream) / 8

    simulated.run(run())


def test_sends_go_on_in_the_next_file(tmp_path: Path) -> None:
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


def test_settings_that_change_count_for_the_next_send(tmp_path: Path) -> None:
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
