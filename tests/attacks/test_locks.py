"""Locks of as many queues as can be, by many clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from tests.attacks.broker_process import attacked
from tests.attacks.flood import Attacker, attackers
from tests.attacks.size import part

OWNERS = 10
QUEUES = part(10_000)


def queues(code: int, owner: int, group: int) -> Command:
    """Return a request for as many queues as one may name."""
    names = [MessageQueue("T" * 50, f"broker-{group}", number) for number in range(QUEUES)]
    return request(
        code, None, encode_body(LockQueues(f"g{group}", f"client-{owner}", False, names))
    )


def test_the_most_locks_of_many_owners(tmp_path: Path) -> None:
    title = "Lock the maximum number of queues from 10 clients"
    limits = {"maxLockNums": OWNERS * QUEUES, "maxAddressShare": 100}
    with attacked(tmp_path, title, **limits) as attack:

        async def main() -> None:
            async with attackers(attack, OWNERS) as them:
                await all_ask(them, RequestCode.LOCK_BATCH_MQ)
                too_many = await them[0].ask(queues(RequestCode.LOCK_BATCH_MQ, 0, OWNERS))
                assert "maxLockNums" in too_many
                them[0].codes.clear()
                await all_ask(them, RequestCode.LOCK_BATCH_MQ)
                await all_ask(them, RequestCode.UNLOCK_BATCH_MQ)
                assert not await them[0].ask(queues(RequestCode.LOCK_BATCH_MQ, 0, OWNERS))

        asyncio.run(main())
    attack.toll.check()


async def all_ask(them: list[Attacker], code: int) -> None:
    """Let each owner ask for the queues of its own group, then of all others."""
    for turn in range(OWNERS):
        for number, one in enumerate(them):
            await one.send([queues(code, number, (number + turn) % OWNERS)])
        for one in them:
            await one.answered()
            assert not any(one.codes), one.remarks
