"""A client that exceeds the limits of its address, while a client of another address works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from tests.attacks.broker_process import Attack, attacked
from tests.attacks.flood import Attacker
from tests.attacks.size import part
from tests.broker.pop import popping
from tests.broker.running import to

ADDRESS = "127.0.0.2"


@asynccontextmanager
async def attacker(attack: Attack) -> AsyncGenerator[Attacker]:
    made = Attacker(
        *await asyncio.open_connection("127.0.0.1", attack.port, local_addr=(ADDRESS, 0))
    )
    try:
        yield made
    finally:
        made.close()


async def refused(attack: Attack, requests: list[Command], name: str) -> None:
    """Send requests; each of them is answered, and some are refused by the limit."""
    async with attacker(attack) as one:
        await one.send(requests)
        await one.answered()
        assert one.codes[ResponseCode.SERVICE_NOT_AVAILABLE] > 0
        assert [remark for remark in one.remarks if name in remark and ADDRESS in remark]


def sends(number: int, size: int) -> list[Command]:
    return [request(RequestCode.SEND_MESSAGE_V2, to("Flood"), b"x" * size) for _ in range(number)]


def test_requests_in_a_second(tmp_path: Path) -> None:
    # The other client has the same limit, and does not reach it.
    number, name = part(60_000), "maxRequestRatePerAddress"
    title = f"Send {number:,} messages with `{name}` = 500"
    with attacked(tmp_path, title, maxRequestRatePerAddress=500) as attack:
        asyncio.run(refused(attack, sends(number, 10), name))
    attack.toll.check()


def test_waiting_requests(tmp_path: Path) -> None:
    number, name = part(10_000), "maxInFlightPerAddress"
    pops = [
        request(
            RequestCode.POP_MESSAGE,
            popping.header(consumer_group="g", topic="TBW102", poll_time=600_000),
        )
        for _ in range(number)
    ]

    async def main(attack: Attack) -> None:
        async with attacker(attack) as one:
            await one.send(pops)
            await one.answered(number - 20)
            assert one.codes == {ResponseCode.SERVICE_NOT_AVAILABLE: number - 20}

    title = f"Let {number:,} pops wait with `{name}` = 20"
    with attacked(tmp_path, title, maxInFlightPerAddress=20) as attack:
        asyncio.run(main(attack))
    attack.toll.check()


def test_connections(tmp_path: Path) -> None:
    number = part(8000)

    async def main(attack: Attack) -> None:
        for _ in range(number // 100):
            opened = [
                await asyncio.open_connection("127.0.0.1", attack.port, local_addr=(ADDRESS, 0))
                for _ in range(100)
            ]
            ends = [asyncio.ensure_future(reader.read()) for reader, _ in opened]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for _, writer in opened:
                writer.transport.abort()
            await asyncio.gather(*ends, return_exceptions=True)

    title = f"Open {number:,} connections with `maxConnectionsPerAddress` = 10"
    with attacked(tmp_path, title, maxConnectionsPerAddress=10) as attack:
        asyncio.run(main(attack))
    attack.toll.check()
