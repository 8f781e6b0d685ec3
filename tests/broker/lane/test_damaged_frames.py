"""Damaged frames have the same outcome in the lane as on the ordinary path."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from mqlake.broker.lane.choice import is_chosen
from mqlake.protocol.command import Command
from mqlake.protocol.errors import FrameError
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.lane.lanes import served, with_lane
from tests.broker.lane.raw_client import KINDS, RawClient, usual
from tests.broker.lane.test_connections import bodies
from tests.broker.running import Running, running
from tests.broker.send.streams import warm

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

STREAMS = 120


def damaged(dice: random.Random) -> bytes:
    """Return a few sends, of which one or more bytes are others, missing, or twice there."""
    kind = dice.choice(KINDS)
    data = bytearray(b"".join(usual(number, kind) for number in range(1, dice.randrange(2, 6))))
    for _ in range(dice.choice((1, 1, 1, 3))):
        at = dice.randrange(len(data))
        match dice.randrange(4):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                data[at] ^= 1 << dice.randrange(8)
            case 2:
                del data[at : at + dice.randrange(1, 9)]
            case _:
                data[at:at] = data[at : at + dice.randrange(1, 9)]
        if not data:
            break
    return bytes(data)


async def outcome(broker: Running, seed: int) -> tuple[object, ...]:
    """Return the answers to damaged streams, and what is stored."""
    dice, found = random.Random(seed), list[list[tuple[int, int, str | None]]]()
    for _ in range(STREAMS):
        client = await RawClient.connect(broker)
        await client.ask(usual(0))
        client.writer.write(damaged(dice))
        client.writer.write_eof()
        data = await client.rest()
        # On the ordinary path, a refusal is answered before sends that wait for the end of a read.
        answers = [(one.opaque, one.code, one.fields.get("queueOffset")) for one in cut(data)]
        found.append(sorted(answers, key=lambda answer: answer[0]))
        client.close()
    return found, bodies(broker), broker.state.store.watermarks.end


def cut(data: bytes) -> list[Command]:
    """Return the answers in received data."""
    found: list[Command] = []
    try:
        found += [one for one in FrameReader(Limits()).feed(data) if isinstance(one, Command)]
    except FrameError as error:
        raise AssertionError("the broker sends what is no frame") from error
    return found


@pytest.mark.parametrize("seed", range(2))
def test_damaged_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    async def with_it() -> tuple[object, ...]:
        async with with_lane(tmp_path / "lane") as (broker, calls):
            found = await outcome(broker, seed)
            assert served(calls) > 0
            return found

    async def without() -> tuple[object, ...]:
        async with running(tmp_path / "ordinary") as broker:
            await warm(broker)
            found = await outcome(broker, seed)
            await RawClient.close_all()
            return found

    found = asyncio.run(with_it())
    monkeypatch.setenv("MQLAKE_LANE", "off")
    expected = asyncio.run(without())
    assert found == expected
