"""The brokers of a cluster, and their state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar

from mqlake.admin import brokers
from mqlake.client.cluster import MASTER
from mqlake.console.cluster.aged import NO_ANSWER
from mqlake.console.cluster.attention import (
    AttentionNote,
    clock_difference,
    number_in,
    warnings_of,
)
from mqlake.console.cluster.view import SECONDS, ClusterView
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.storage.clock import SystemClock

T = TypeVar("T")

_PATIENCE: Final = 3.0
"""Seconds that a page waits for a broker."""
_SETTINGS_AGE: Final = 30.0


class BrokerSummary(NamedTuple):
    """A broker; its numbers are 0 if it does not answer.

    Attributes:
        role: "master" or "slave N".
        in_rate, out_rate: messages a second in the last minute.
        disk: the used share of the disk with the log, in percent.
        replication_lag: bytes that the slowest slave of a master lacks; None without slaves.
        clock: milliseconds by which its clock is ahead of the console's; None if unknown.
    """

    cluster: str
    name: str
    role: str
    address: str
    version: str
    in_rate: float
    out_rate: float
    today_in: int
    today_out: int
    disk: float
    replication_lag: int | None
    clock: int | None
    started: int
    warnings: list[AttentionNote]


async def broker_states(view: ClusterView) -> list[BrokerSummary]:
    """Return all brokers, by cluster, name and id. They are asked at the same time."""

    async def fetch() -> list[BrokerSummary]:
        asked = [
            _state(view, data.cluster, data.broker_name, broker_id, address, len(addresses) - 1)
            for data in await view.brokers()
            for addresses in [data.broker_addrs]
            for broker_id, address in sorted(addresses.items())
        ]
        found = list(await asyncio.gather(*asked))
        into = sum(each.in_rate for each in found if each.role == "master")
        out = sum(each.out_rate for each in found)
        view.rates.add(SystemClock().milliseconds(), into, out)
        return found

    return await view.kept.get("broker states", SECONDS, fetch)


async def status_of(view: ClusterView, address: str) -> Mapping[str, str]:
    """Return the runtime status of a broker."""
    fetch = partial(brokers.status, view.admin, address)
    return await view.kept.get(("status of", address), SECONDS, fetch)


async def settings_of(
    view: ClusterView, address: str, age: float = _SETTINGS_AGE
) -> Mapping[str, str]:
    """Return the settings of a broker.

    Args:
        age: how many seconds old they may be.
    """
    fetch = partial(brokers.config, view.admin, address)
    return await view.kept.get(("settings of", address), age, fetch)


async def _state(
    view: ClusterView, cluster: str, name: str, broker_id: int, address: str, slaves: int
) -> BrokerSummary:
    facts = await _facts(view, address)
    config: Mapping[str, str] = {}
    ha: HaRuntimeInfo | None = None
    is_master = broker_id == MASTER
    if facts is not None:
        config = await _or_nothing(settings_of(view, address), {})
        if is_master and slaves > 0:
            ha = await _or_nothing(brokers.ha_status(view.admin, address), None)
    now = SystemClock().milliseconds()
    shown = facts or {}
    return BrokerSummary(
        cluster=cluster,
        name=name,
        role="master" if is_master else f"slave {broker_id}",
        address=address,
        version=shown.get("brokerVersionDesc", "").removeprefix("V").replace("_", "."),
        in_rate=number_in(shown, "putTps"),
        out_rate=number_in(shown, "getTransferredTps"),
        today_in=_today(shown, "Put"),
        today_out=_today(shown, "Get"),
        disk=round(100 * number_in(shown, "commitLogDiskRatio"), 1),
        replication_lag=max((each.diff for each in ha.ha_connection_info), default=None)
        if ha
        else None,
        clock=clock_difference(shown, now),
        started=int(number_in(shown, "bootTimestamp")),
        warnings=warnings_of(facts, config, ha, slaves if is_master else 0, now),
    )


def _today(facts: Mapping[str, str], what: str) -> int:
    total, morning = f"msg{what}TotalTodayNow", f"msg{what}TotalTodayMorning"
    return int(number_in(facts, total) - number_in(facts, morning))


async def _facts(view: ClusterView, address: str) -> dict[str, str] | None:
    """Return the runtime status; None if the broker does not answer, empty if it refuses."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await brokers.status(view.admin, address)
    except (*NO_ANSWER, TimeoutError):
        return None
    except MqlakeError:
        return {}  # This user may not see it, or the answer is malformed.


async def _or_nothing(asked: Awaitable[T], nothing: T) -> T:
    """Return an answer; `nothing` if the broker refuses it, as it may to this user."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await asked
    except (MqlakeError, TimeoutError):
        return nothing
