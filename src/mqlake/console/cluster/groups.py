"""The consumer groups of a cluster: a list of all, and one with what explains its lag."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqlake.admin import groups, topics
from mqlake.admin.each_broker import BrokerFailure, read_each
from mqlake.console.cluster.diagnosis import GroupState
from mqlake.console.cluster.members import ConnectedMembers, membership
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup, SubscriptionGroups
from mqlake.formats.topic_names import OF_GROUPS, RETRY_PREFIX
from mqlake.protocol.bodies.stats import BrokerConsumeStats
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import BrokerConsumeStatsHeader
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS
from mqlake.storage.clock import SystemClock

_AGE: Final = 5.0
_PATIENCE: Final = 60.0
_TOPICS: Final = 20
"""Topics of a group whose rates a page asks for."""


KINDS: Final = ("normal", "system")


def kind_of(name: str) -> str:
    """Return the kind of a group: those of brokers and of RocketMQ's own services are "system"."""
    is_system = name in SYSTEM_GROUPS or name.startswith(SYSTEM_GROUP_PREFIX)
    return "system" if is_system else "normal"


class GroupRow(NamedTuple):
    """A group in the list.

    Attributes:
        lag: messages that it has not consumed; None if it has no offsets, or they are unknown.
        topics: how many topics it has offsets of.
        rate: messages a second that it receives.
        retries: messages in its retry topic that it has not consumed.
    """

    name: str
    lag: int | None = None
    topics: int = 0
    rate: float = 0.0
    retries: int = 0


class AllLags(NamedTuple):
    """The lags of all groups.

    Attributes:
        rows: by name.
        missing: what could not be asked, and why.
    """

    rows: dict[str, GroupRow]
    missing: list[str]


class ListedGroups(NamedTuple):
    """All groups, by name, and why others may be missing."""

    names: list[str]
    missing: list[str]


async def group_names(view: ClusterView) -> ListedGroups:
    """Return the names of all groups, with one request to each master."""

    async def fetch() -> ListedGroups:
        names: set[str] = {
            topic.removeprefix(RETRY_PREFIX)
            for topic in await topics.names(view.admin)
            if topic.startswith(RETRY_PREFIX)
        }
        missing: list[str] = []
        for table in (await _tables(view)).values():
            if isinstance(table, BrokerFailure):
                missing.append(table.missing("its groups are missing"))
            else:
                names |= set(table)
        return ListedGroups(sorted(names), missing)

    return await view.kept.get("groups", _AGE, fetch)


async def all_lags(view: ClusterView) -> AllLags:
    """Return the lags of all groups, with one request to each master, which may take long."""
    missing: list[BrokerFailure] = []
    stats = await read_each(
        await view.admin.brokers(), lambda each: _lags(view, each.address), missing, _PATIENCE
    )
    texts = [each.missing("lags on it are missing") for each in missing]
    return await asyncio.to_thread(_all_rows, stats, texts)


def _all_rows(known: list[BrokerConsumeStats], missing: list[str]) -> AllLags:
    names = {name for each in known for name in each.groups}
    return AllLags({name: _row(name, known) for name in names}, missing)


async def _tables(
    view: ClusterView,
) -> Mapping[str, Mapping[str, SubscriptionGroup] | BrokerFailure]:
    """Return the settings of all groups, or why they are unknown, by the broker's name.

    A request for the settings of one group would create it on a broker that creates groups.
    """

    masters = await view.masters()
    asked = await asyncio.gather(*(_table(view, *each) for each in masters.items()))
    return dict(zip(masters, asked, strict=True))


async def _table(
    view: ClusterView, broker: str, address: str
) -> Mapping[str, SubscriptionGroup] | BrokerFailure:
    async def fetch() -> Mapping[str, SubscriptionGroup]:
        answer = await view.admin.ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return decode_answer(SubscriptionGroups, answer.body).subscription_group_table

    try:
        return await view.kept.get(("group table", address), _AGE, fetch)
    except MqlakeError as error:
        return BrokerFailure(broker, error)


async def _lags(view: ClusterView, address: str) -> BrokerConsumeStats:
    code, header = RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader()
    answer = await view.admin.ask(address, code, header, seconds=_PATIENCE)
    return await asyncio.to_thread(BrokerConsumeStats.decode, answer.body)


def _row(name: str, known: list[BrokerConsumeStats]) -> GroupRow:
    found = [stats for each in known for stats in each.groups.get(name, ())]
    queues = [(queue, at) for stats in found for queue, at in stats.offset_table.items()]
    read = {queue.topic for queue, _ in queues}
    return GroupRow(
        name,
        sum(max(0, at.lag) for _, at in queues) if queues else None,
        len({topic for topic in read if not topic.startswith(OF_GROUPS)}),
        sum(stats.consume_tps for stats in found),
        sum(max(0, at.lag) for queue, at in queues if queue.topic.startswith(RETRY_PREFIX)),
    )


async def group_state(view: ClusterView, group: str) -> GroupState:
    """Return what is known of a group."""

    async def fetch() -> GroupState:
        silent: list[BrokerFailure] = []
        progress = await groups.progress_on(view.admin, group, missing=silent)
        settings = await config_of(view, group)
        members = await membership(view, group)
        read = sorted({row.topic for row in progress} | set(members.subscriptions))
        wanted = [topic for topic in read if not topic.startswith(RETRY_PREFIX)][:_TOPICS]
        into = await asyncio.gather(*(_rate(view, topic, "") for topic in wanted))
        out = await asyncio.gather(*(_rate(view, topic, group) for topic in wanted))
        return GroupState(
            progress,
            members,
            {broker: each.consume_enable for broker, each in settings.items()},
            sum(into),
            sum(out),
            SystemClock().milliseconds(),
            missing=[each.missing("its queues are missing") for each in silent],
        )

    silent: list[BrokerFailure] = []
    kept = view.kept.get(("group", group), 2.0, fetch)
    return await view.known(kept, None, silent) or _unknown(silent)


def _unknown(silent: list[BrokerFailure]) -> GroupState:
    """Return the state of a group about which no broker reports anything."""
    members = [each.missing("its members are missing") for each in silent]
    return GroupState(
        [],
        ConnectedMembers([], {}, "", "", False, members),
        {},
        0.0,
        0.0,
        SystemClock().milliseconds(),
        missing=[each.missing("its queues are missing") for each in silent],
    )


async def _rate(view: ClusterView, topic: str, group: str) -> float:
    """Return a rate of a topic, or of a group in it; 0 if the topic does not exist any more."""
    name, key = ("GROUP_GET_NUMS", f"{topic}@{group}") if group else ("TOPIC_PUT_NUMS", topic)
    try:
        return (await topics.measured(view.admin, topic, name, key, []))[0]
    except MqlakeError:
        return 0.0


async def config_of(view: ClusterView, group: str) -> dict[str, SubscriptionGroup]:
    """Return a group's settings on each broker that has it."""
    found = await configs(view, group)
    return {k: each for k, each in found.items() if not isinstance(each, BrokerFailure)}


async def configs(view: ClusterView, group: str) -> dict[str, SubscriptionGroup | BrokerFailure]:
    """Return a group's settings on each broker that has it, or why they are unknown."""
    return {
        broker: table if isinstance(table, BrokerFailure) else table[group]
        for broker, table in (await _tables(view)).items()
        if isinstance(table, BrokerFailure) or group in table
    }
