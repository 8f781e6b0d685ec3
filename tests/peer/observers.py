"""What rocketmq-exporter and RocketMQ Dashboard see of a cluster, after the same traffic.

Neither is in a registry. `rocketmq_client/Exporter.java` and `Dashboard.java` send the requests
that they send, through RocketMQ's own admin client, in the release that they are built with.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from tests.peer.rocketmq_client import NEWEST, NEWEST_4, Clients

TOPIC, GROUP, PRODUCERS = "Watched", "G_watched", "P_watched"
BACKLOG, LAGGING = "Backlog", "G_lagging"
RETRIES = "Retries"
QUEUES = {TOPIC: 4, BACKLOG: 4, RETRIES: 4, f"%RETRY%G_{RETRIES}": 1}
PATIENCE = 120
"""Seconds."""
SAMPLING = 10
"""Seconds between two samples of the broker's statistics."""

Seen = dict[str, dict[str, Any]]


def observe(
    names: str, broker: str, directory: Path, wait: Callable[[float], None] = time.sleep
) -> dict[str, Seen]:
    """Make traffic, and return what each observer sees.

    Args:
        names: the address of the name server.
        broker: the address of the broker.
        directory: for what the clients write.
        wait: lets so many seconds pass on the broker's clock.
    """
    with ExitStack() as stack:
        jvms: list[Clients] = []
        for version in (NEWEST, NEWEST_4):
            place = directory / version
            place.mkdir(parents=True)
            jvms.append(Clients(place, version))
            stack.callback(jvms[-1].close)
        clients, exporter = jvms
        last = _traffic(clients, names, wait)
        metrics = exporter.exporter(names)
        pages = clients.dashboard(names, (TOPIC, GROUP, PRODUCERS, last["unique"], "mk39"))
        clients.let_go(names)
    places = {broker: "BROKER", names: "NAMES"}
    return {"exporter": _tidied(metrics, places), "dashboard": _tidied(pages, places)}


async def _prepare(names: str) -> None:
    async with Admin(names) as admin:
        for name, count in QUEUES.items():
            topic = Topic(topic_name=name, read_queue_nums=count, write_queue_nums=count)
            await topics.update(admin, topic, None, "broker-a")
        for name in (GROUP, LAGGING):
            group = SubscriptionGroup(group_name=name, consume_broadcast_enable=False)
            await groups.update(admin, group, None, "broker-a")


async def _committed(names: str) -> None:
    """Return once the group has committed all that it consumed; clients do so every 5 seconds."""
    async with Admin(names) as admin, asyncio.timeout(PATIENCE):
        # Only the broker knows, and it tells nobody.
        while any(each.lag for each in await groups.progress(admin, GROUP, TOPIC)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def _traffic(clients: Clients, names: str, wait: Callable[[float], None]) -> dict[str, str]:
    asyncio.run(_prepare(names))
    clients.die(names, RETRIES, f"G_{RETRIES}")
    clients.lag(names, BACKLOG, LAGGING, 20)
    last = clients.hold(names, TOPIC, GROUP, PRODUCERS)
    wait(SAMPLING + 1)
    clients.send(names, TOPIC, 8)
    asyncio.run(_committed(names))
    wait(SAMPLING + 1)
    return last


def _tidied(seen: Seen, places: dict[str, str]) -> Seen:
    """Leave out what differs from run to run: addresses, paths, rates, and the observers."""
    return {
        name: {
            _text(labels, places): _value(name, labels, value, places)
            for labels, value in values.items()
            if not _LEFT_OUT.search(labels)
        }
        for name, values in seen.items()
    }


_LEFT_OUT = re.compile(
    # The observers' own clients, and a store that mqlake does not have.
    "TOOLS_CONSUMER|CLIENT_INNER_PRODUCER|ROCKSDB|"
    # RocketMQ 4 has the first, without which the exporter fails; mqlake alone has the second.
    "^(brokerVersion|haTls)$|"
    # Their defaults are mqlake's own: see tests/peer/mqadmin_matrix.py.
    "^(allAckInSyncStateSet|enableSingleTopicRegister|inSyncReplicas|maxLiteSubscriptionCount|"
    "maxLmqConsumeQueueNum)$|"
    # `Cluster` changes them; and whether a group has committed this offset yet is chance.
    "^(timerFlushIntervalMs|transactionMetricFlushInterval|%RETRY%G_watched 0)$|"
    # Where a side is.
    "^(bindAddress|brokerIP1|brokerIP2|listenPort|haListenPort|namesrvAddr|rocketmqHome|storePath.*)$"
)
_EXACT = re.compile(
    "(msg(Put|Get)Total(TodayMorning|YesterdayMorning)|scheduleMessageOffset_.*|brokerVersion.*|"
    ".*ThreadPoolQueueSize|dispatchBehindBytes|commitLogMinOffset|dispatchMaxBuffer|brokerActive)$"
)
"""Runtime statistics whose values are compared, not only their forms."""


def _value(name: str, labels: str, value: Any, places: Mapping[str, str]) -> Any:
    if name == "brokeruntime" and not _EXACT.match(labels):
        text = re.sub(r"-?\d[\d.,]*(E-?\d+)?", "N", _text(value, places))
        return re.sub("N[KMGT]iB", "NB", re.sub("(N ?)+", "N", text))
    if name.isupper() and isinstance(value, bool) and TOPIC not in labels:
        return "a rate"  # whether there was traffic between two samples is chance
    match value:
        case str():
            return _text(value, places)
        case list():
            shown = (each for each in value if not _is_left_out(each))
            return [_value(name, labels, each, places) for each in shown]
        case dict():
            return {
                _text(key, places): _value(name, labels, each, places)
                for key, each in value.items()
            }
    return value


def _is_left_out(value: Any) -> bool:
    return isinstance(value, str) and _LEFT_OUT.search(value) is not None


def _text(value: str, places: Mapping[str, str]) -> str:
    for place, word in places.items():
        value = value.replace(place, word)
    return re.sub(r"(?<![\w.-])/[\w./~-]+|(?<=Ratio_)/[\w./~-]+", "PATH", value)
