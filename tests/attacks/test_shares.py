"""What belongs to all, and one stranger wants for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.replication.frames import encode_report
from tests.attacks.broker_process import attacked
from tests.attacks.flood import attackers
from tests.attacks.raw import connections, push
from tests.attacks.size import part

GROUPS, EACH = part(20_000), part(1000)
SLAVES = 256


def beat(name: str, count: int) -> Command:
    consumers = [ConsumerData(f"{name}-{number}") for number in range(count)]
    data = Heartbeat("stranger", consumer_data_set=consumers)
    return request(RequestCode.HEART_BEAT, None, encode_body(data))


def beats() -> Iterator[Command]:
    """Yield heartbeats of more groups than there may be."""
    for number in range(GROUPS // EACH + 2):
        yield beat(f"stranger-{number}", EACH)


def test_heartbeats_that_fill_the_table_of_groups(tmp_path: Path) -> None:
    title = f"Fill the table of {GROUPS:,} groups by heartbeats of one address"
    limits = {"maxSubscriptionGroupNums": GROUPS, "maxGroupsPerHeartbeat": 2 * GROUPS}
    with attacked(tmp_path, title, **limits) as attack:

        async def main() -> None:
            async with attackers(attack, 1) as (stranger,):
                await stranger.send(beats())
                await stranger.answered()
                remarks = "".join(stranger.remarks)
                assert "maxSubscriptionGroupNums" in remarks
                assert "maxAddressShare" in remarks
            # Its connection is closed, so its groups hold nothing, and make room.
            async with attackers(attack, 1) as (other,):
                async with asyncio.timeout(60):
                    while await other.ask(beat("late", 5)):  # noqa: ASYNC110 (nothing tells)
                        await asyncio.sleep(0.1)

        asyncio.run(main())
    attack.toll.check()


def test_connections_of_slaves_that_report_nothing(tmp_path: Path) -> None:
    title = "Take all places of slaves with silent connections, and read nothing on others"
    with attacked(tmp_path, title) as attack:
        port = attack.port + 1
        with (
            connections(port, SLAVES) as _silent,
            connections(port, SLAVES // 8, receive=1 << 12) as deaf,
            connections(port, 1) as (slave,),
        ):
            for each in deaf:
                assert push(each, encode_report(0))
            # A slave that reports is served nevertheless: the master sends heartbeats.
            assert push(slave, encode_report(0))
            slave.settimeout(60)
            assert slave.recv(12)
    attack.toll.check()
