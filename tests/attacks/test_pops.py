"""Pops over topics of very many queues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.broker.state.topics import MOST_QUEUES
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pop import NotificationHeader, PopHeader
from tests.attacks.broker_process import attacked
from tests.attacks.flood import Attacker, attackers
from tests.attacks.size import part
from tests.broker.admin.asking import wanted
from tests.broker.running import to

QUEUES = part(4096)
GROUPS = 10


def pops(milliseconds: int) -> Iterator[Command]:
    """Yield a pop and a notification of each group over all queues."""
    for number in range(GROUPS):
        group = f"attacker-{number}"
        yield request(
            RequestCode.POP_MESSAGE,
            PopHeader(
                consumer_group=group,
                topic="Attacked",
                queue_id=-1,
                max_msg_nums=32,
                invisible_time=60_000,
                poll_time=milliseconds,
                init_mode=0,
            ),
        )
        yield request(
            RequestCode.NOTIFICATION,
            NotificationHeader(
                consumer_group=group, topic="Attacked", queue_id=-1, poll_time=milliseconds
            ),
        )


@pytest.mark.parametrize("milliseconds", [0, pytest.param(15_000, marks=pytest.mark.nightly)])
def test_pops_over_very_many_queues(tmp_path: Path, milliseconds: int) -> None:
    assert QUEUES <= MOST_QUEUES
    waiting = f"waiting for up to {milliseconds // 1000} s" if milliseconds else "without waiting"
    with attacked(
        tmp_path, f"Pop from all {QUEUES:,} queues of a topic, {waiting}", timerWheelEnable=True
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 5) as (other, *them):
                header = wanted("Attacked", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                assert not await other.ask(request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
                for _ in range(2):
                    for one in them:
                        await one.send(pops(milliseconds))
                    await asyncio.sleep(1 if milliseconds else 0)
                    for queue_id in range(0, QUEUES, QUEUES // 8):
                        header = to("Attacked", queue_id=queue_id)
                        await other.ask(request(RequestCode.SEND_MESSAGE_V2, header, b"hello"))
                for one in them:
                    await one.answered()
                    assert set(one.codes) <= {ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT}

        asyncio.run(main())
    attack.toll.check()


def test_very_many_queues_are_popped_in_order(tmp_path: Path) -> None:
    """What is in hand is written to a file a few seconds later."""
    with attacked(
        tmp_path, f"Pop from each of {QUEUES:,} queues in order, by 4 groups", timerWheelEnable=True
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 4) as them:
                header = wanted("Attacked", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                assert not await them[0].ask(request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
                await them[0].send(
                    request(RequestCode.SEND_MESSAGE_V2, to("Attacked", queue_id=number), b"a")
                    for number in range(QUEUES)
                )
                await them[0].answered()
                await _until_dispatched(them[0])
                attack.probe.settle()
                attack.probe.reset()
                for number, one in enumerate(them):
                    await one.send(ordered_pops(f"attacker-{number}"))
                for one in them:
                    await one.answered()
                    assert one.codes[ResponseCode.SUCCESS] >= QUEUES
                await asyncio.sleep(8)

        asyncio.run(main())
    content = (tmp_path / "store/config/consumerOrderInfo.json").read_text()
    assert content.count("Attacked@attacker-") == 4
    attack.toll.check()


def ordered_pops(group: str) -> Iterator[Command]:
    """Yield a pop of each queue."""
    for number in range(QUEUES):
        header = PopHeader(
            consumer_group=group,
            topic="Attacked",
            queue_id=number,
            max_msg_nums=1,
            invisible_time=600_000,
            poll_time=0,
            init_mode=0,
            order=True,
        )
        yield request(RequestCode.POP_MESSAGE, header)


async def _until_dispatched(one: Attacker) -> None:
    """Wait until the message that was sent last, to the last queue, can be popped."""
    before = one.codes[ResponseCode.SUCCESS]
    while one.codes[ResponseCode.SUCCESS] == before:
        *_, last = ordered_pops("first")
        await one.ask(last)
