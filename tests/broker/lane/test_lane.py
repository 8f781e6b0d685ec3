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
from mqlake.programs.serve import loop_factory
from mqlake.protocol.codes import RequestCode, ResponseCode
from tests.broker.lane.lanes import served, with_lane
from tests.broker.running import running
from tests.broker.send.bursts import ask_bursts, in_bursts, outcome
from tests.broker.send.streams import warm

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

LOOPS = [asyncio.new_event_loop, loop_factory() or asyncio.new_event_loop]
CODE = int(RequestCode.SEND_MESSAGE_V2)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("seed", range(3))
def test_lane_changes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    bursts = in_bursts(random.Random(seed), 1500)
    # Most of them are unusual; the connection stays nevertheless.
    monkeypatch.setattr(seats, "_MOST_OTHERS", 1 << 30)

    async def with_it() -> tuple[Any, ...]:
        async with with_lane(tmp_path / "lane") as (broker, calls):
            found = await outcome(broker, bursts)
            assert served(calls) > 200
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
    from tests.broker.send.random_sends import KEY, made
    from tests.protocol.messages import SEND_FIELDS

    async def run() -> None:
        async with with_lane(tmp_path, slowRequestMillis=60_000) as (broker, calls):
            frame = made(0, SEND_FIELDS | {"i": KEY})
            answers = await ask_bursts(broker, [[frame]] * 50)
            assert len(answers) == 50
            assert served(calls) > 40
            latencies = broker.broker.latencies
            assert latencies is not None
            kinds = {kind: times.count for kind, times in latencies.all().items()}
            found = {kind: count for kind, count in kinds.items() if kind.request_code == CODE}
            assert list(found.values()) == [51]
            assert next(iter(found)).response_code == ResponseCode.SUCCESS
            put_times: Any = broker.state.stats.put_times
            assert sum(put_times._counts) == 51

    asyncio.run(run())
