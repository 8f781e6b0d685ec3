"""Retry topics that outlive a topic, a group, or a setting: no dead message comes back, and no
living one is hidden.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import ResetOffsetHeader
from mqlake.protocol.headers.pop import PeekHeader
from tests import simulated
from tests.broker.admin.asking import done
from tests.broker.endings.world import World

TOPIC, GROUP = "T", "G"
OTHERS = {"g": "a_t", "g_a": "t"}
"""Topics by group whose retry topic has the same name."""


async def _retried(world: World, topic: str = TOPIC, group: str = GROUP) -> None:
    """Let a message be redelivered to a group."""
    await world.create(topic, group)
    await world.send(topic, f"old of {group}")
    (popped,) = await world.pop(topic, group)
    await world.change(topic, group, popped, 0)
    await world.settle()


@pytest.mark.parametrize("is_topic", [False, True])
def test_offsets_were_lost_before_the_deletion(tmp_path: Path, *, is_topic: bool) -> None:
    """The process was killed before it wrote them, so nothing names the retry topic."""

    async def test() -> None:
        async with World(tmp_path) as world:
            await _retried(world)
            offsets = world.broker.state.store.config.consumer_offsets
            for topic in offsets.topics_of(GROUP):
                offsets.remove(GROUP, topic)
            if is_topic:
                await world.delete_topic(TOPIC)
            else:
                await world.delete_group(GROUP, clean_offset=True)
            await world.create(TOPIC, GROUP)
            await world.send(TOPIC, "new")
            peeked = PeekHeader(consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=32)
            answer = await world.broker.ask(RequestCode.PEEK_MESSAGE, peeked)
            assert bytes(answer.body).count(b"old of G") == (0 if is_topic else 1)
            popped = [each.body for each in await world.pop(TOPIC, GROUP)]
            assert sorted(popped) == (["new"] if is_topic else ["new", "old of G"])

    simulated.run(test())


def test_a_retry_topic_stays_if_the_settings_say_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            await world.restart(clearRetryTopicWhenDeleteTopic=False)
            await _retried(world)
            await world.delete_topic(TOPIC)
            await world.create(TOPIC, GROUP)
            assert (await world.received(TOPIC, GROUP, ["old of G"])).keys() == {"old of G"}

    simulated.run(test())


def test_messages_popped_from_a_shared_retry_topic_end_with_their_topic(tmp_path: Path) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            for group, topic in OTHERS.items():
                await _retried(world, topic, group)
            for group, topic in OTHERS.items():
                assert [each.body for each in await world.pop(topic, group)] == [f"old of {group}"]
            await world.delete_topic("a_t")
            await world.create("a_t", "g")
            assert not await world.received("a_t", "g", [])
            assert (await world.received("t", "g_a", ["old of g_a"])).keys() == {"old of g_a"}

    simulated.run(test())


@pytest.mark.parametrize("is_v2", [False, True])
def test_the_other_name_is_read_after_a_change_of_the_setting(
    tmp_path: Path, *, is_v2: bool
) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            await world.restart(enableRetryTopicV2=is_v2)
            await _retried(world)
            await world.restart(enableRetryTopicV2=not is_v2)
            assert (await world.received(TOPIC, GROUP, ["old of G"])).keys() == {"old of G"}

    simulated.run(test())


def test_a_reset_outlives_a_stop(tmp_path: Path) -> None:
    """Pops before the reset are settled after it, and before the next pop."""

    async def test() -> None:
        async with World(tmp_path) as world:
            await world.create(TOPIC, GROUP)
            await world.send(TOPIC, "a")
            (popped,) = await world.pop(TOPIC, GROUP)
            reset = ResetOffsetHeader(topic=TOPIC, group=GROUP, timestamp=0)
            await done(world.broker, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
            await world.acknowledge(TOPIC, GROUP, popped)
            await world.later(world.pace.out)
            await world.restart()
            assert [each.body for each in await world.pop(TOPIC, GROUP)] == ["a"]

    simulated.run(test())
