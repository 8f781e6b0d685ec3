"""Very many requests that wait, and are woken, or end, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pop import NotificationHeader, PopHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from tests.attacks.broker_process import attacked
from tests.attacks.flood import Attacker, attackers
from tests.attacks.size import part
from tests.broker.pull.pulls import pull_header
from tests.broker.running import to

TOPIC = "Attacked"
CONNECTIONS = 10
EACH = part(10_000)
ALL = f"{CONNECTIONS * EACH:,}"
LIMITS = {"maxPullPollingSize": part(64_000)}


def pulls(count: int, milliseconds: int = 600_000) -> Iterator[Command]:
    """Yield pulls that wait."""
    flags = HAS_SUBSCRIPTION | MAY_SUSPEND
    header = pull_header(1, topic=TOPIC, sys_flag=flags, suspend_timeout_millis=milliseconds)
    return (request(RequestCode.PULL_MESSAGE, header) for _ in range(count))


async def put(one: Attacker) -> None:
    assert not await one.ask(request(RequestCode.SEND_MESSAGE_V2, to(TOPIC), b"hello"))


async def park(them: list[Attacker]) -> None:
    """Let as many pulls wait as may, at the end of a queue that has one message."""
    for one in them:
        await one.send(pulls(EACH))
    await settle(them)


async def settle(them: list[Attacker]) -> None:
    for one in them:
        await one.settle()


def test_a_put_wakes_very_many_pulls(tmp_path: Path) -> None:
    with attacked(tmp_path, f"Wake {ALL} waiting pulls with one message", **LIMITS) as attack:

        async def main() -> None:
            async with attackers(attack, CONNECTIONS + 1) as (other, *them):
                await put(other)
                await park(them)
                await other.send(pulls(1))
                await put(other)
                for one in them:
                    await one.answered()
                    assert set(one.answers.values()) == {1}, "each once"
                    refused = one.codes[ResponseCode.SERVICE_NOT_AVAILABLE]
                    assert one.codes[ResponseCode.SUCCESS] == EACH + 1 - refused
                    assert refused < EACH // 2
                remarks = "".join(remark for one in them for remark in one.remarks)
                assert "maxPullPollingSize" in remarks, "those of the greediest made room"
                await other.answered()
                assert other.codes == {ResponseCode.SUCCESS: other.answers.total()}

        asyncio.run(main())
    attack.toll.check()


def test_very_many_pulls_end_at_once(tmp_path: Path) -> None:
    with attacked(tmp_path, f"Let {ALL} waiting pulls time out together", **LIMITS) as attack:

        async def main() -> None:
            async with attackers(attack, CONNECTIONS + 1) as (other, *them):
                await put(other)
                for one in them:
                    await one.send(pulls(EACH, 10_000))
                for one in them:
                    await one.answered()
                    refused = one.codes[ResponseCode.SERVICE_NOT_AVAILABLE]
                    assert one.codes[ResponseCode.PULL_NOT_FOUND] == EACH - refused
                    assert refused < EACH // 2
                    assert set(one.answers.values()) == {1}

        asyncio.run(main())
    attack.toll.check()


def test_connections_with_very_many_pulls_are_closed(tmp_path: Path) -> None:
    title = f"Close half of the connections on which {ALL} pulls wait"
    with attacked(tmp_path, title, **LIMITS) as attack:

        async def main() -> None:
            for _ in range(2):  # nothing is left of those that are gone
                async with attackers(attack, CONNECTIONS + 1) as (other, *them):
                    await put(other)
                    await park(them)
                    for one in them[::2]:
                        one.close()
                    await put(other)
                    for one in them[1::2]:
                        await one.answered()
                        assert set(one.answers.values()) == {1}, "each once"

        asyncio.run(main())
    attack.toll.check()


def test_too_many_pulls_of_one_connection(tmp_path: Path) -> None:
    with attacked(
        tmp_path, "Send more pulls on one connection than may wait there", pullPollingSize=100
    ) as attack:

        async def main() -> None:
            async with attackers(attack) as (one,):
                await put(one)
                await one.send(pulls(5000))
                await one.answered(4901)
                assert "pullPollingSize" in "".join(one.remarks)

        asyncio.run(main())
    attack.toll.check()


def pops(count: int, milliseconds: int) -> Iterator[Command]:
    """Yield pops and notifications that wait, of many groups."""
    fields: dict[str, Any] = {"topic": TOPIC, "queue_id": 0, "poll_time": milliseconds}
    for number in range(count):
        group = f"attacker-{number % 100}"
        if number % 2:
            header = PopHeader(
                consumer_group=group, max_msg_nums=1, invisible_time=10_000, init_mode=1, **fields
            )
            yield request(RequestCode.POP_MESSAGE, header)
        else:
            yield request(
                RequestCode.NOTIFICATION, NotificationHeader(consumer_group=group, **fields)
            )


@pytest.mark.parametrize("milliseconds", [10_000, 300_000])
def test_very_many_pops(tmp_path: Path, milliseconds: int) -> None:
    with attacked(
        tmp_path,
        f"Send {5 * EACH:,} pops and notifications that wait for up to {milliseconds // 1000} s",
        timerWheelEnable=True,
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 6) as (other, *them):
                await put(other)
                for one in them:
                    await one.send(pops(EACH, milliseconds))
                await settle(them)
                await put(other)
                if milliseconds == 10_000:
                    for one in them:
                        await one.answered()
                        assert set(one.answers.values()) == {1}

        asyncio.run(main())
    attack.toll.check()
