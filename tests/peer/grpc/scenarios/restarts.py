"""The server is killed while clients are connected, and starts again at the same address."""

from __future__ import annotations

import asyncio

from tests.peer.grpc.driver import RefusedError
from tests.peer.grpc.rig import Observation, Rig, Scenario

_PAUSE = 0.5
_RECONNECTING = ("node", "java")
"""Languages whose clients continue; that for Python does not within minutes, on either side."""


async def _pushed(rig: Rig) -> Observation:
    """A producer and a push consumer continue after the server was killed and started again."""
    await rig.push()
    await rig.producer()
    before = [f"before {number}" for number in range(5)]
    await rig.send_all(before)
    await rig.seen(5)
    await rig.restarted()
    after = [f"after {number}" for number in range(5)]
    for body in after:
        await _send(rig, body)
    wanted = {*before, *after}
    # What was not yet acknowledged may come again.
    seen = await rig.seen(lambda found: wanted <= {each["body"] for each in found})
    return {"seen": sorted({each["body"] for each in seen})}


async def _received(rig: Rig) -> Observation:
    """What was sent before the server was killed is received, and acknowledged, afterwards."""
    await rig.producer()
    await rig.simple()
    await rig.send_all([str(number) for number in range(5)])
    await rig.restarted()
    seen = set[str]()
    acknowledged = set[str]()
    while len(acknowledged) < 5:
        try:
            for each in await rig.receive(hidden=10):
                seen.add(each["body"])
                await rig.do("ack", "c", receipt=each["receipt"])
                acknowledged.add(each["body"])
        except RefusedError:
            await asyncio.sleep(_PAUSE)
    return {"seen": sorted(seen), "acknowledged": sorted(acknowledged)}


async def _send(rig: Rig, body: str) -> None:
    """Send a message until it is accepted: as a program has to, while the server is away."""
    while True:
        try:
            await rig.send(body)
        except RefusedError:
            await asyncio.sleep(_PAUSE)
        else:
            return


SCENARIOS = (
    Scenario("restart and push", _pushed, languages=_RECONNECTING, restarts=True, is_long=True),
    Scenario(
        "restart and receive", _received, languages=_RECONNECTING, restarts=True, is_long=True
    ),
)
