"""A master and its slave, mqlake's beside RocketMQ's: throughput, CPU, and sends that wait."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.peer.rocketmq_cluster import Cluster
from tests.replication.pairs import caught_up

from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.broker import load
from benchmarks.broker.load import Load
from benchmarks.broker.sides import JVM, SETTINGS, MqlakeBroker, Side, cpu_seconds
from benchmarks.broker.stock_clients import Measured, Phase, run_phase
from benchmarks.results import Bar, Section, Series
from mqlake.programs.ports import free_port
from mqlake.protocol.command import Serialization
from mqlake.remoting.client import RemotingClient
from mqlake.replication.master_log import ask

BODY = 1 << 10
SENDING, FULL = 2.0, 1 << 30
"""Seconds of sends at full size; that is this many bytes of a file."""
WAIT = 120.0
"""Seconds in which a slave has to have everything."""
TITLES = {"java": "Java", "mqlake": "mqlake"}
SYNC = Phase(
    "SYNC_MASTER, 64 threads, 1 KiB",
    "Producer",
    ("-t", "Bench1024", "-s", str(BODY), "-w", "64"),
    1.0,
)

METHOD = """\
A master and its slave, processes of their own, over loopback: RocketMQ {release} on both sides, and
mqlake on both. Throughput: an `ASYNC_MASTER` is sent messages of 1 KiB as fast as it answers, over
16 connections with 64 in flight each; the time ends when the slave has the last one. CPU is the
user and system time of either process for these messages. Waiting sends: RocketMQ's own program
`Producer` with 64 threads against a `SYNC_MASTER` with one slave (`inSyncReplicas=2`), the median
of reports of 10 s. The first round of each is dropped."""


class Pair(NamedTuple):
    """A master and the slave that follows it."""

    master: Side
    slave: Side


def measure(bench: Bench) -> Section:
    """Measure both pairs."""
    found = _throughput(bench)
    series = [_series(f"throughput, {TITLES[name]}", found[name]) for name in TITLES]
    java, mqlake = found["java"], found["mqlake"]
    bars = [
        Bar(
            "throughput, against Java's",
            "≥",
            1.0,
            _median(mqlake, "rate") / _median(java, "rate"),
            "x",
        )
    ]
    for side in Pair._fields:
        ratio = _median(mqlake, side) / _median(java, side)
        bars.append(Bar(f"CPU of the {side} for a message, against Java's", "≤", 0.5, ratio, "x"))
    remarks = [
        f"{TITLES[name]}: {_median(each, 'rate'):,.0f} messages a second; CPU for a million:"
        f" master {_median(each, 'master'):.1f} s, slave {_median(each, 'slave'):.1f} s"
        for name, each in found.items()
    ]
    sync = {name: _waiting_sends(bench, name) for name in TITLES}
    rates = {name: statistics.median(each.rates) for name, each in sync.items()}
    title = f"{SYNC.title}: messages a second, against Java's"
    bars.append(Bar(title, "≥", SYNC.wanted, rates["mqlake"] / rates["java"], "x"))
    series += [
        Series(
            f"{SYNC.title}, {TITLES[name]}",
            "s",
            [1e6 / rate for rate in each.rates],
            {"messages": 1_000_000},
        )
        for name, each in sync.items()
    ]
    method = METHOD.format(release="5.5.0")
    return Section("replication", "Master and slave", method, series, bars, remarks)


@contextmanager
def _pair(name: str, home: Path, role: str) -> Generator[Pair]:
    """Run a master of a role, and its slave, until the block ends."""
    start = {"java": _java, "mqlake": _mqlake}[name]
    home.mkdir()
    with ExitStack() as undo:
        undo.callback(remove, home)
        master = start(home / "master", {"brokerRole": role, "inSyncReplicas": "2"}, "")
        undo.callback(master.stop)
        slave = start(home / "slave", {"brokerRole": "SLAVE", "brokerId": "1"}, master.names)
        undo.callback(slave.stop)
        asyncio.run(_connected(master))
        yield Pair(master, slave)


def _java(home: Path, settings: dict[str, str], names: str) -> Side:
    home.mkdir()
    cluster = Cluster(home, home / "store", SETTINGS | settings, JVM, also=names)
    cluster.start()
    return cluster


def _mqlake(home: Path, settings: dict[str, str], names: str) -> Side:
    also = {"namesrvAddr": names} if names else {}
    return MqlakeBroker(home, haListenPort=str(free_port()), **settings, **also)


async def _connected(master: Side) -> None:
    client = RemotingClient()
    try:
        await caught_up(client, master.broker)
    finally:
        await client.close()


# Throughput


def _throughput(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    spent = SENDING * min(1.0, bench.size / FULL)
    with ExitStack() as undo:
        runs: dict[str, Callable[[], dict[str, Any]]] = {}
        for name in TITLES:
            home = bench.directory / f"replication-{name}"
            pair = undo.enter_context(_pair(name, home, "ASYNC_MASTER"))
            runs[name] = partial(_replicate, pair, max(spent, 0.25))
        return interleave(runs, dropped=1, repetitions=bench.repetitions, writes=bench.size)


def _replicate(pair: Pair, spent: float) -> dict[str, Any]:
    """Send for some seconds, until the slave has everything."""
    before = [cpu_seconds(each.process_id) for each in pair]
    # Answers with binary headers state the release of the broker, which `load` does not know.
    sent = load.run(
        Load(
            pair.master.broker,
            size=BODY,
            seconds=spent,
            warm_up=spent / 4,
            headers=Serialization.JSON,
        )
    )
    messages, begin = sent["total"], time.perf_counter()
    asyncio.run(_followed(pair))
    taken = messages / sent["rate"] + time.perf_counter() - begin
    used = [cpu_seconds(each.process_id) for each in pair]
    million = [(now - then) / messages * 1e6 for then, now in zip(before, used, strict=True)]
    say(f"    {messages / taken:,.0f} messages a second; CPU for a million: {million}")
    return {
        "seconds": taken,
        "messages": int(messages),
        "rate": messages / taken,
        **dict(zip(Pair._fields, million, strict=True)),
    }


async def _followed(pair: Pair) -> None:
    """Return once a slave has the whole log of its master."""
    client = RemotingClient()
    try:
        async with asyncio.timeout(WAIT):
            end = (await ask(client, pair.master.broker)).end
            while (await ask(client, pair.slave.broker)).end < end:  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.01)
    finally:
        await client.close()


def _series(name: str, found: list[dict[str, Any]]) -> Series:
    """Return what a million messages took, as the repetitions differ in their number."""
    values = [each / one["messages"] * 1e6 for one, each in zip(found, seconds(found), strict=True)]
    return Series(name, "s", values, {"messages": 1_000_000, "bytes": BODY * 1_000_000})


def _median(found: list[dict[str, Any]], name: str) -> float:
    return statistics.median(each[name] for each in found)


# Sends that wait for the slave


def _waiting_sends(bench: Bench, name: str) -> Measured:
    with _pair(name, bench.directory / f"sync-{name}", "SYNC_MASTER") as pair:
        return run_phase(bench, SYNC, name, pair.master)
