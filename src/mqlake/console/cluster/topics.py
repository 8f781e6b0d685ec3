"""The topics of a cluster: a list of all, with one request to each broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mqlake.admin import topics
from mqlake.admin.each_broker import BrokerFailure
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import MESSAGE_TYPE, PERM_READ, PERM_WRITE, Topic, Topics
from mqlake.formats.topic_names import DLQ_PREFIX, RETRY_PREFIX
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.naming import is_system_topic

_AGE: Final = 10.0
_STATE_AGE: Final = 2.0
_GROUPS: Final = 20
"""Groups whose rates a page asks for."""
_LACKING: Final = "its queues and rates are missing"

KINDS: Final = ("normal", "retry", "dead letters", "system")


class TopicRow(NamedTuple):
    """A topic in the list.

    Attributes:
        kind: one of KINDS.
        message_type: the attribute `message.type`, empty if it has none.
        queues: read and write queues over all brokers; empty if they are unknown.
        permission: in words; empty if it is unknown.
        brokers: how many brokers have it.
    """

    name: str
    kind: str
    message_type: str
    queues: str
    permission: str
    brokers: int


class TopicState(NamedTuple):
    """What is known of a topic's queues and groups.

    Attributes:
        in_rate: messages a second.
        groups: the first groups that consume it, with their messages a second and in a day.
        more_groups: the others.
        missing: sentences about the brokers that did not answer.
    """

    queues: Sequence[topics.QueueStatus]
    in_rate: float
    groups: Sequence[tuple[str, float, int]]
    more_groups: Sequence[str]
    missing: Sequence[str]


class TopicSettingsTables(NamedTuple):
    """The settings of all topics.

    Attributes:
        by_broker: tables of the brokers that answered, by the broker's name.
        missing: the other brokers.
    """

    by_broker: Mapping[str, Mapping[str, Topic]]
    missing: Sequence[BrokerFailure]


def permission_text(permission: int) -> str:
    """Return a permission in words."""
    words = [name for bit, name in ((PERM_READ, "read"), (PERM_WRITE, "write")) if permission & bit]
    return " and ".join(words) or "none"


def kind_of(name: str) -> str:
    """Return the kind of a topic."""
    if name.startswith(RETRY_PREFIX):
        return "retry"
    if name.startswith(DLQ_PREFIX):
        return "dead letters"
    return "system" if is_system_topic(name) else "normal"


async def names(view: ClusterView) -> list[str]:
    """Return the names of all topics."""
    return await view.kept.get("topic names", _AGE, lambda: topics.names(view.admin))


async def tables(view: ClusterView) -> TopicSettingsTables:
    """Return the settings of all topics, with one request to each master."""

    masters = await view.masters()
    asked = [_table(view, *each) for each in masters.items()]
    found = dict(zip(masters, await asyncio.gather(*asked), strict=True))
    return TopicSettingsTables(
        {k: table for k, table in found.items() if not isinstance(table, BrokerFailure)},
        [table for table in found.values() if isinstance(table, BrokerFailure)],
    )


async def _table(
    view: ClusterView, broker: str, address: str
) -> Mapping[str, Topic] | BrokerFailure:
    async def fetch() -> Mapping[str, Topic]:
        answer = await view.admin.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG)
        return decode_answer(Topics, answer.body).topic_config_table

    try:
        return await view.kept.get(("topic table", address), _AGE, fetch)
    except MqlakeError as error:
        return BrokerFailure(broker, error)


async def topic_state(view: ClusterView, topic: str) -> TopicState:
    """Return what is known of a topic's queues and groups."""

    async def fetch() -> TopicState:
        silent: list[BrokerFailure] = []
        admin = view.admin
        queues = await topics.status(admin, topic, silent)
        names = await topics.groups(admin, topic, silent)
        asked = [
            topics.measured(admin, topic, "GROUP_GET_NUMS", f"{topic}@{name}", silent)
            for name in names[:_GROUPS]
        ]
        into, *out = await asyncio.gather(
            topics.measured(admin, topic, "TOPIC_PUT_NUMS", topic, silent), *asked
        )
        rates = [(name, rate, int(total)) for name, (rate, total) in zip(names, out, strict=False)]
        return TopicState(queues, into[0], rates, names[_GROUPS:], _missing(silent))

    silent: list[BrokerFailure] = []
    kept = view.kept.get(("topic", topic), _STATE_AGE, fetch)
    return await view.known(kept, None, silent) or TopicState([], 0.0, [], [], _missing(silent))


def _missing(silent: list[BrokerFailure]) -> list[str]:
    return [each.missing(_LACKING) for each in {one.broker: one for one in silent}.values()]


def rows(found: list[str], known: TopicSettingsTables) -> list[TopicRow]:
    """Return the rows of some topics."""
    return [_row(name, known) for name in found]


def _row(name: str, known: TopicSettingsTables) -> TopicRow:
    settings = [table[name] for table in known.by_broker.values() if name in table]
    read = sum(each.read_queue_nums for each in settings)
    write = sum(each.write_queue_nums for each in settings)
    permissions = sorted({permission_text(each.perm) for each in settings})
    types = sorted({each.attributes.get(MESSAGE_TYPE, "") for each in settings} - {""})
    return TopicRow(
        name,
        kind_of(name),
        ", ".join(types),
        "" if not settings else str(read) if read == write else f"{read} read, {write} write",
        "; ".join(permissions),
        len(settings),
    )
