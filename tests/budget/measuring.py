"""Measure every handler of a full broker, and of a name server that knows as many topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.remoting.server import RemotingServer
from tests.budget.connection import Connection
from tests.budget.full_broker import TOPICS, full_broker
from tests.budget.measured import Measured
from tests.budget.meter import BUDGET, Meter, scale
from tests.budget.requests import BROKER, NAME_SERVER, Ask, registration

AGAIN = 12
"""Requests whose shortest time counts, if the first ones take too long: other processes share the
processor's caches, and the host takes processors away for a while.
"""
LARGEST = 16 << 20
"""Bytes of the largest frame that RocketMQ's clients read."""


async def measure_broker(
    path: Path, meter: Meter, share: int = 1, allowance: int = 1
) -> list[Measured]:
    """Measure the handlers of a broker with an n-th of what the limits allow.

    A request that takes longer than `allowance` budgets is measured again.
    """
    async with full_broker(path, meter, share) as broker:
        marks = broker.state.store.watermarks

        async def settle() -> None:
            """Wait until what was sent is dispatched: that is work of this request."""
            while marks.dispatched < marks.end:
                await asyncio.sleep(0.01)
                meter.mute()

        return await _measure(broker.broker._server, BROKER, meter, settle, allowance)


async def measure_name_server(meter: Meter, share: int = 1, allowance: int = 1) -> list[Measured]:
    """Measure the handlers of a name server; `allowance` is that of `measure_broker`."""
    async with NameServer({"listen_port": 0}) as names:
        server = names._server
        asks = [
            registration([f"T{n}" for n in range(TOPICS // share)], 0),
            registration([f"U{n}" for n in range(TOPICS // share)], 1),
        ]
        table = dict(NAME_SERVER) | {RequestCode.REGISTER_BROKER: tuple(asks)}
        return await _measure(server, table, meter, lambda: asyncio.sleep(0), allowance)


async def _measure(
    server: RemotingServer,
    table: Mapping[RequestCode, tuple[Ask, ...]],
    meter: Meter,
    settle: Callable[[], Awaitable[object]],
    allowance: int,
) -> list[Measured]:
    found: list[Measured] = []
    is_exact = allowance == 1
    for code, asks in table.items():
        for ask in asks:
            name = " ".join(filter(None, (code.name, ask.what)))
            one = Connection(server, meter)
            best = await _measure_one(
                one, name, ask.command(code), meter, settle, is_exact=is_exact
            )
            for _ in range(AGAIN - 1):
                if best.milliseconds <= allowance * BUDGET * 1000:
                    break
                # Other processes may slow this one down from one moment to the next.
                again = await _measure_one(
                    one, name, ask.command(code), meter, settle, is_exact=is_exact
                )
                best = min(best, again, key=lambda measured: measured.milliseconds)
            found.append(best)
    return found


async def _measure_one(
    one: Connection,
    name: str,
    command: Command,
    meter: Meter,
    settle: Callable[[], Awaitable[object]],
    *,
    is_exact: bool,
) -> Measured:
    meter.take()
    try:
        answer = await one.ask(command)
    except TimeoutError:
        raise AssertionError(f"{name}: no answer") from None
    await settle()
    longest, total = meter.take()
    # What a slow machine does within the budget, any does.
    slowness = scale() if is_exact or longest.seconds > BUDGET else 1.0
    return Measured(name, longest, total, len(answer.body), slowness)
