"""Filter expressions of the largest size, and as many of them as can be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, Subscription
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pop import PopHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from tests.attacks.broker_process import attacked
from tests.attacks.flood import attackers
from tests.attacks.size import part
from tests.broker.pull.pulls import pull_header
from tests.broker.running import to

TOPIC = "Attacked"
PROPERTIES = "\2".join(f"a{number}\1x" for number in range(300))
EACH = part(100)
SUBSCRIPTIONS = part(200)
"""Those of a group."""


def expression(number: int) -> str:
    """Return an expression of the largest size that no message fulfils."""
    terms, size = [f"n{number} = '1'"], 20
    while size < 4070:
        terms.append(f"a{len(terms)} = 'b'")
        size += len(terms[-1]) + 4
    return " OR ".join(terms)


def pulls(start: int, count: int) -> Iterator[Command]:
    flags = HAS_SUBSCRIPTION | MAY_SUSPEND
    for number in range(start, start + count):
        fields: dict[str, Any] = {
            "topic": TOPIC,
            "consumer_group": f"attacker-{number % 50}",
            "subscription": expression(number),
            "expression_type": "SQL92",
            "sys_flag": flags,
            "suspend_timeout_millis": 5000,
        }
        yield request(RequestCode.PULL_MESSAGE, pull_header(0, **fields))


def pops(start: int, count: int) -> Iterator[Command]:
    for number in range(start, start + count):
        header = PopHeader(
            consumer_group=f"attacker-{number % 50}",
            topic=TOPIC,
            queue_id=0,
            max_msg_nums=32,
            invisible_time=60_000,
            poll_time=5000,
            init_mode=0,
            exp=expression(number),
            exp_type="SQL92",
        )
        yield request(RequestCode.POP_MESSAGE, header)


def test_the_largest_expressions(tmp_path: Path) -> None:
    with attacked(
        tmp_path,
        f"Pull and pop with {6 * EACH} SQL92 filters of 4,000 characters",
        enablePropertyFilter=True,
        timerWheelEnable=True,
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 7) as (other, *them):
                header = to(TOPIC, properties=PROPERTIES)
                sends = [request(RequestCode.SEND_MESSAGE_V2, header, b"a") for _ in range(500)]
                await other.ask(sends.pop())
                await other.send(sends)
                await other.answered()
                for number, one in enumerate(them):
                    ask = pulls if number % 2 else pops
                    await one.send(ask(number * EACH, EACH))
                await asyncio.sleep(1)
                await other.send(
                    request(RequestCode.SEND_MESSAGE_V2, header, b"a") for _ in range(50)
                )
                for one in them:
                    await one.answered()
                    assert ResponseCode.SUBSCRIPTION_PARSE_FAILED not in one.codes

        asyncio.run(main())
    attack.toll.check()


def test_the_most_subscriptions(tmp_path: Path) -> None:
    with attacked(
        tmp_path,
        "Fill the memory for subscriptions with heartbeats",
        enablePropertyFilter=True,
        maxSubscriptionsSize=part(64 << 20),
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 10) as them:
                for turn in range(4):
                    for number, one in enumerate(them):
                        await one.send(beats(f"client-{number}", number, turn))
                    for one in them:
                        await one.answered()
                remarks = "".join(remark for one in them for remark in one.remarks)
                assert "maxSubscriptionsSize" in remarks

        asyncio.run(main())
    attack.toll.check()


def beats(client: str, start: int, version: int) -> Iterator[Command]:
    """Yield heartbeats that fill the memory for subscriptions."""
    for number in range(10):
        subscriptions = [
            Subscription(f"T{each}", expression(each), expression_type="SQL92", sub_version=version)
            for each in range(SUBSCRIPTIONS)
        ]
        group = f"attacker-{start}-{number}"
        consumer = ConsumerData(group, subscription_data_set=subscriptions)
        beat = Heartbeat(client, consumer_data_set=[consumer])
        yield request(RequestCode.HEART_BEAT, None, encode_body(beat))
