"""Two groups whose retry topics have the same name: each gets its own messages, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.pop import PeekHeader
from mqlake.protocol.headers.send import SendBackHeader
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.endings.world import World
from tests.broker.running import to

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
                assert (await world.received(NAMES[group], group, expected)).keys() == set(expected)

    simulated.run(test())


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
            assert (await world.received("t", "g_a", ["<g_a>"])).keys() == {"<g_a>"}
            again = set() if is_topic else {"<g>"}
            assert (await world.received("a_t", "g", list(again))).keys() == again

    simulated.run(test())


@pytest.mark.parametrize("is_sent_back", [False, True])
def test_a_copy_of_another_groups_message_is_not_hidden(
    tmp_path: Path, *, is_sent_back: bool
) -> None:
    """A client forwards a message with all its properties; a consumer of the copy fails."""

    async def test() -> None:
        async with World(tmp_path) as world:
            await world.create("T", "h")
            properties = "POP_RETRY_GROUP\x01g\x02"
            await world.broker.send(to("T", properties=properties), b"sent back")
            (record,) = world.broker.records("T")
            header = SendBackHeader(offset=record.physical_offset, group="h", delay_level=1)
            await done(world.broker, RequestCode.CONSUMER_SEND_MSG_BACK, header)
            if not is_sent_back:
                # What clients do if the request failed.
                await world.broker.send(to("%RETRY%h", properties=properties), b"sent")
            expected = {"sent back"} if is_sent_back else {"sent", "sent back"}
            found, rounds = set[str](), 0
            while not found >= expected and (rounds := rounds + 1) < 60:
                found |= {each.body for each in await world.pop("%RETRY%h", "h")}
                await world.later(1)
            assert found == expected

    simulated.run(test())
