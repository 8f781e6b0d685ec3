"""Consumer groups that hold nothing expire; all others stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mqlake.broker.state.groups import Groups
from mqlake.broker.state.stats import GROUP_GET
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import GroupForbiddenHeader
from mqlake.protocol.headers.clients import UnregisterClientHeader
from mqlake.protocol.naming import SYSTEM_GROUPS
from tests import simulated
from tests.broker.admin.asking import done, wanted
from tests.broker.running import Running, running, to
from tests.crash.clock import ManualClock

DAY = 24 * 60 * 60 * 1000
GROUP = "g"
SYSTEM_GROUP = min(SYSTEM_GROUPS)


def beat(group: str) -> bytes:
    return encode_body(Heartbeat("client", consumer_data_set=[ConsumerData(group)]))


async def join(broker: Running) -> None:
    await done(broker, RequestCode.HEART_BEAT, body=beat(GROUP))


async def leave(broker: Running) -> None:
    await join(broker)
    header = UnregisterClientHeader(client_id="client", consumer_group=GROUP)
    await done(broker, RequestCode.UNREGISTER_CLIENT, header)


async def commit(broker: Running) -> None:
    await leave(broker)
    broker.state.store.config.consumer_offsets.commit(GROUP, "T", 0, 5)


async def send_back(broker: Running) -> None:
    await leave(broker)
    assert (await broker.send(to(f"%RETRY%{GROUP}"))).code == 0


async def bury(broker: Running) -> None:
    await leave(broker)
    broker.state.topics.make(f"%DLQ%{GROUP}", 1)
    assert (await broker.send(to(f"%DLQ%{GROUP}"))).code == 0


async def forbid(broker: Running) -> None:
    await leave(broker)
    await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("T"))
    header = GroupForbiddenHeader(group=GROUP, topic="T", readable=False)
    await done(broker, RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)


async def create(broker: Running) -> None:
    body = encode_body(SubscriptionGroup(group_name=GROUP))
    await done(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


async def change(broker: Running) -> None:
    """As a group of RocketMQ's file: nothing says who has created it."""
    broker.state.groups.put(SubscriptionGroup(group_name=GROUP, retry_max_times=3))


HOLDING: list[Callable[[Running], Awaitable[None]]] = [
    join,
    commit,
    send_back,
    bury,
    forbid,
    create,
    change,
]
"""What makes a group one that stays."""


async def pass_days(broker: Running, clock: ManualClock, days: int = 2) -> None:
    for _ in range(days):
        await broker.runtime.slices.finish(broker.state.empty_groups.expire())
        clock.forward(DAY)
    await broker.runtime.slices.finish(broker.state.empty_groups.expire())


def groups_of(groups: Groups) -> set[str]:
    return set(groups) - set(SYSTEM_GROUPS)


def test_a_group_that_holds_nothing_expires(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker:
            await leave(broker)
            clock.forward(DAY - 1)
            await broker.runtime.slices.finish(broker.state.empty_groups.expire())
            assert groups_of(broker.state.groups) == {GROUP}
            assert f"%RETRY%{GROUP}" in broker.state.topics
            clock.forward(1)
            await broker.runtime.slices.finish(broker.state.empty_groups.expire())
            assert groups_of(broker.state.groups) == set()
            assert f"%RETRY%{GROUP}" not in broker.state.topics
            await join(broker)
            assert groups_of(broker.state.groups) == {GROUP}, "its next consumer creates it"
            assert f"%RETRY%{GROUP}" in broker.state.topics

    simulated.run(main())


@pytest.mark.parametrize("hold", HOLDING)
def test_a_group_that_holds_something_stays(
    tmp_path: Path, hold: Callable[[Running], Awaitable[None]]
) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock, maxSubscriptionGroupNums=20) as broker:
            await hold(broker)
            await pass_days(broker, clock)
            assert GROUP in broker.state.groups
            # It makes no room for others, either.
            for number in range(40):
                await broker.ask(RequestCode.HEART_BEAT, None, beat(f"other{number}"))
            assert GROUP in broker.state.groups
        async with running(tmp_path, clock=clock) as broker:
            if hold is join:
                await join(broker)
            await pass_days(broker, clock)
            assert GROUP in broker.state.groups

    simulated.run(main())


@pytest.mark.parametrize("settings", [{}, {"autoCreateSubscriptionGroup": False}])
def test_groups_found_at_a_start_expire_if_consumers_may_create_them(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker:
            for number in range(9):
                await done(broker, RequestCode.HEART_BEAT, body=beat(f"g{number}"))
        async with running(tmp_path, clock=clock, **settings) as broker:
            assert len(groups_of(broker.state.groups)) == 9
            await pass_days(broker, clock)
            assert len(groups_of(broker.state.groups)) == (9 if settings else 0)

    simulated.run(main())


def test_a_full_table_has_room_once_its_groups_hold_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, maxAddressShare=100) as broker:
            for number in range(30):
                await done(broker, RequestCode.HEART_BEAT, body=beat(f"g{number}"))
        most = len(SYSTEM_GROUPS) + 30
        async with running(tmp_path, maxSubscriptionGroupNums=most) as broker:
            await broker.runtime.slices.finish(broker.state.empty_groups.expire())
            for number in range(20):
                await done(broker, RequestCode.HEART_BEAT, body=beat(f"new{number}"))
                assert len(broker.state.groups) == most
            assert f"new{number}" in broker.state.clients.consumers

    simulated.run(main())


@pytest.mark.parametrize("is_for_room", [False, True])
def test_what_was_counted_of_a_group_that_held_nothing_ends_with_it(
    tmp_path: Path, is_for_room: bool
) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with running(tmp_path, clock=clock) as broker:
            await leave(broker)
            stats = broker.state.stats
            stats.got(GROUP, "T", 1, 10)
            stats.got(SYSTEM_GROUP, "T", 1, 10)
            assert stats.find(GROUP_GET, f"T@{GROUP}") is not None
            if is_for_room:
                assert broker.state.empty_groups.make_room()
            await pass_days(broker, clock)
            assert GROUP not in broker.state.groups
            assert stats.find(GROUP_GET, f"T@{GROUP}") is None
            assert stats.find(GROUP_GET, f"T@{SYSTEM_GROUP}") is not None

    simulated.run(main())
