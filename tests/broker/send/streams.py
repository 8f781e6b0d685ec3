"""Streams of sends, written at once."""

from __future__ import annotations

import asyncio
from typing import Any

from mqlake.protocol.command import Command
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.broker.running import PATIENCE, Running, to
from tests.broker.send.random_sends import (
    KEY,
    TOPIC,
)


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
    """Make the topic, and wait until the lane is loaded, if there is one."""
    await broker.send(to(TOPIC, properties=KEY))
    server: Any = broker.broker
    if (lane := server._server._shared.direct) is not None:
        await asyncio.wait_for(lane.load(), PATIENCE)
