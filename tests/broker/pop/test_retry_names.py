"""Two groups whose retry topics have the same name: each gets its own messages, and only those."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.pop import PeekHeader
from tests.broker.endings.world import World

NAMES = {"g": "a_t", "g_a": "t"}
"""Topics by group: the retry topic of both is %RETRY%g_a_t."""


async def _retried(world: World) -> None:
    """Let a message of each group be redelivered."""
    for group, topic in NAMES.items():
        await world.create(topic, group)
        await world.send(topic, f"<{group}>")
        (popped,) = await world.pop(topic, group)
        await world.change(topic, group, popped, 0)
    await world.settle()


@pytest.mark.parametrize("first", NAMES)
def test_each_group_gets_its_own_messages(tmp_path: Path, first: str) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            await _retried(world)
            second = next(group for group in NAMES if group != first)
            for group in (first, second):
                peeked = PeekHeader(
                    consumer_group=group, topic=NAMES[group], queue_id=-1, max_msg_nums=32
                )
                answer = await world.broker.ask(RequestCode.PEEK_MESSAGE, peeked)
                for each in NAMES:
                    assert (f"<{each}>".encode() in answer.body) == (each == group)
                expected = [f"<{group}>"]
                assert await world.received(NAMES[group], group, expected) == set(expected)

    asyncio.run(test())


@pytest.mark.parametrize("is_topic", [False, True])
def test_the_other_group_keeps_its_messages(tmp_path: Path, *, is_topic: bool) -> None:
    """The group or its topic is deleted, but not the retry topic that is another group's, too."""

    async def test() -> None:
        async with World(tmp_path) as world:
            await _retried(world)
            if is_topic:
                await world.delete_topic(NAMES["g"])
            else:
                await world.delete_group("g", clean_offset=True)
            await world.create(NAMES["g"], "g")
            assert await world.received("t", "g_a", ["<g_a>"]) == {"<g_a>"}
            again = set() if is_topic else {"<g>"}
            assert await world.received("a_t", "g", list(again)) == again

    asyncio.run(test())
