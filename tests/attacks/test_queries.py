"""Queries by key that have much to examine, and very many groups that one message wakes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.protocol.headers.query import QueryMessageHeader
from tests.attacks.broker_process import attacked
from tests.attacks.flood import Attacker, attackers
from tests.attacks.size import part
from tests.broker.pull.pulls import pull_header
from tests.broker.running import to

TOPIC = "Attacked"
MESSAGES = part(80_000)
QUERIES = 5
GROUPS = 1000


def keyed(*keys: str, tags: str = "tag") -> Command:
    """Return a message with keys."""
    properties = f"KEYS\x01{' '.join(keys)}\x02TAGS\x01{tags}\x02"
    return request(RequestCode.SEND_MESSAGE_V2, to(TOPIC, properties=properties), bytes(100))


def query(key: str, end: int = (1 << 63) - 1, kind: str | None = None) -> Command:
    header = QueryMessageHeader(TOPIC, key, 64, 0, end, kind)
    return request(RequestCode.QUERY_MESSAGE, header)


def test_equal_keys_of_one_message(tmp_path: Path) -> None:
    """`Aa` and `BB` have the same hash."""
    title = "Query a key whose hash 10,000 keys of each of 5 messages have"
    with attacked(tmp_path, title) as attack:

        async def main() -> None:
            async with attackers(attack, 5) as them:
                for one in them:
                    assert not await one.ask(keyed(*["Aa"] * 10_000))
                for one in them:
                    await one.send(query("BB") for _ in range(QUERIES))
                for one in them:
                    await one.answered()
                    assert one.codes[ResponseCode.QUERY_NOT_FOUND] == QUERIES

        asyncio.run(main())
    attack.toll.check()


def test_a_key_of_very_many_messages(tmp_path: Path) -> None:
    with attacked(tmp_path, f"Query the key that {MESSAGES:,} messages have") as attack:

        async def main() -> None:
            async with attackers(attack, 5) as them:
                await fill(them)
                for one in them:
                    await one.send(query("one", end=1) for _ in range(QUERIES))
                    await one.send(query("one") for _ in range(QUERIES))
                for one in them:
                    await one.answered()
                    assert one.codes[ResponseCode.QUERY_NOT_FOUND] == QUERIES

        asyncio.run(main())
    attack.toll.check()


@pytest.mark.parametrize("kind", ["tags", "disabled"])
def test_queries_that_the_index_does_not_answer(tmp_path: Path, kind: str) -> None:
    """Half of those who ask are gone before the answer."""
    settings: dict[str, dict[str, object]] = {
        "tags": {"indexDialect": "5.3"},
        "disabled": {"messageIndexEnable": False},
    }
    title = {
        "tags": "Query by tag, which the index of an older release lacks",
        "disabled": "Query by key on a broker that writes no index",
    }
    with attacked(tmp_path, title[kind], **settings[kind]) as attack:

        async def main() -> None:
            asked = query("none", kind="T" if kind == "tags" else None)
            async with attackers(attack, 6) as (other, *them):
                await fill(them)
                for one in them:
                    await one.send([asked] * 20)
                await other.send([asked])
                for one in them[::2]:
                    one.close()
                for one in (other, *them[1::2]):
                    await one.answered()
                    assert one.codes[ResponseCode.QUERY_NOT_FOUND] >= 1

        asyncio.run(main())
    attack.toll.check()


async def fill(them: list[Attacker]) -> None:
    for one in them:
        await one.send(keyed("one", f"k{n}") for n in range(MESSAGES // len(them)))
    for one in them:
        await one.answered()


def test_a_put_wakes_very_many_groups(tmp_path: Path) -> None:
    """Others are served in between, and each group is answered once."""
    with attacked(tmp_path, f"Wake {GROUPS:,} groups that wait at one queue") as attack:

        async def main() -> None:
            async with attackers(attack, 11) as (other, *them):
                assert not await other.ask(request(RequestCode.SEND_MESSAGE_V2, to(TOPIC), b"one"))
                for number, one in enumerate(them):
                    await one.send(pulls(number))
                for one in them:
                    await one.settle()
                for _ in range(3):
                    assert not await other.ask(keyed("k"))
                for one in them:
                    await one.answered()
                    assert set(one.answers.values()) == {1}

        asyncio.run(main())
    attack.toll.check()


def pulls(number: int) -> Iterator[Command]:
    """Yield pulls that wait, each of another group."""
    for group in range(GROUPS // 10):
        header = pull_header(
            1,
            topic=TOPIC,
            consumer_group=f"attacker-{number}-{group}",
            sys_flag=HAS_SUBSCRIPTION | MAY_SUSPEND,
            suspend_timeout_millis=600_000,
        )
        yield request(RequestCode.PULL_MESSAGE, header)
