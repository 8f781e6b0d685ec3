"""The lane stores, answers and counts sends as the ordinary path does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.lane import seats
from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.lane.lane import CODES
from mqlake.formats.message_batch import encode_batch
from mqlake.programs.serve import loop_factory
from mqlake.protocol.codes import RequestCode, ResponseCode
from tests.broker.lane.lanes import served, with_lane
from tests.broker.running import running
from tests.broker.send.bursts import (
    ask_bursts,
    in_bursts,
    outcome,
    random_batch,
    random_frame,
)
from tests.broker.send.random_sends import BATCH_FIELDS, KEY, batch, made
from tests.broker.send.streams import warm
from tests.protocol.messages import SEND_FIELDS

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

LOOPS = [asyncio.new_event_loop, loop_factory() or asyncio.new_event_loop]


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("draw", [random_frame, random_batch])
@pytest.mark.parametrize("seed", range(2))
def test_lane_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    loop: Callable[[], asyncio.AbstractEventLoop],
    draw: Callable[[random.Random, int, int], bytes],
) -> None:
    bursts = in_bursts(random.Random(seed), 1000, draw)
    # Most of them are unusual; the connection stays nevertheless.
    monkeypatch.setattr(seats, "_MOST_OTHERS", 1 << 30)

    async def with_it() -> tuple[Any, ...]:
        async with with_lane(tmp_path / "lane") as (broker, calls):
            found = await outcome(broker, bursts)
            assert served(calls) > 150
            return found

    async def without() -> tuple[Any, ...]:
        async with running(tmp_path / "ordinary") as broker:
            await warm(broker)
            return await outcome(broker, bursts)

    with asyncio.Runner(loop_factory=loop) as runner:
        found = runner.run(with_it())
        monkeypatch.setenv("MQLAKE_LANE", "off")
        for one, expected in zip(found, runner.run(without()), strict=True):
            assert one == expected


def test_times_count_each_send_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path, slowRequestMillis=60_000) as (broker, calls):
            frame = made(0, SEND_FIELDS | {"i": KEY})
            body = encode_batch([(0, b"x", b"")] * 3)
            answers = await ask_bursts(broker, [[frame, batch(BATCH_FIELDS, body)]] * 50)
            assert len(answers) == 100
            assert served(calls) > 80
            latencies = broker.broker.latencies
            assert latencies is not None
            found = {
                kind: times.count
                for kind, times in latencies.all().items()
                if kind.request_code in CODES
            }
            assert {kind.request_code: count for kind, count in found.items()} == {
                RequestCode.SEND_MESSAGE_V2: 51,
                RequestCode.SEND_BATCH_MESSAGE: 50,
            }
            assert {kind.response_code for kind in found} == {ResponseCode.SUCCESS}
            put_times: Any = broker.state.stats.put_times
            assert sum(put_times._counts) == 101

    asyncio.run(run())
