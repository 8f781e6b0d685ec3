"""Beside RocketMQ's gRPC client for Python, which needs a proxy in front of the broker."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.peer.python_build import environment
from tests.peer.rocketmq_proxy import Proxy

from benchmarks.bench import Bench, interleave
from benchmarks.client.sides import a_broker
from benchmarks.memory_state import stored
from benchmarks.peer import ROOT, Peer
from benchmarks.results import Bar, Section, Series
from mqlake.admin import Admin, groups
from mqlake.client import PullConsumer
from mqlake.formats.config.subscription_group import SubscriptionGroup

VERSION = "5.1.2"
CLIENT = ROOT / "tests" / "peer" / "rocketmq_grpc_python"
SENT, IN_FLIGHT, CONSUMED, SIZE, DROPPED = 5_000, 64, 10_000, 128, 1
NAMES = {"mqlake": "mqlake", "grpc": "rocketmq-python-client"}

METHOD = """\
rocketmq-python-client {version} sends gRPC to RocketMQ's proxy 5.5.0 (cluster mode, a JVM), which
uses the same `mqlake broker` as mqlake's client. The clients take turns. Each sends {sent:,}
messages of {size} bytes with {in_flight} in flight (`send_async`), and consumes a backlog of
{consumed:,} messages with a listener (`PushConsumer` with its defaults; mqlake's `Consumer` with a
handler), timed from the first message received to the last. Client, proxy and broker share the
machine's cores. The first turn is dropped."""


def measure(bench: Bench) -> Section:
    """Measure both clients, sending and consuming."""
    with a_broker(bench) as broker:
        proxy = Proxy(bench.directory / "proxy", broker.names)
        peers = {
            "mqlake": _peer(bench, "mqlake", Path(sys.executable), "-m", "benchmarks.client.peer"),
            "grpc": _peer(
                bench, "grpc", environment(CLIENT), ROOT / "benchmarks/client/grpc_peer.py"
            ),
        }
        where = {"mqlake": broker.names, "grpc": proxy.endpoint}
        try:
            peers["mqlake"].ask("batches", broker.names, "Sent", SIZE, 50, 50, 1)
            peers["mqlake"].ask("batches", broker.names, "Backlog", SIZE, CONSUMED, 50, 4)
            sends = {
                name: partial(peer.ask, "send", where[name], "Sent", SIZE, SENT, IN_FLIGHT)
                for name, peer in peers.items()
            }
            numbers = count()

            def consume(name: str) -> dict[str, Any]:
                group = f"backlog-{next(numbers)}"
                asyncio.run(_begin(broker.names, group))
                return peers[name].ask("push", where[name], "Backlog", group, CONSUMED)

            consumers = {name: partial(consume, name) for name in peers}
            sent, consumed = (_turns(bench, runs) for runs in (sends, consumers))
        finally:
            for peer in peers.values():
                peer.close()
            proxy.close()
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    for what, turns, number in (("sending", sent, SENT), ("consuming", consumed, CONSUMED)):
        for name, answers in turns.items():
            taken = [each["seconds"] for each in answers]
            series.append(Series(f"{what}: {NAMES[name]}", "s", taken, {"messages": number}))
            cpu = 1e6 * _median(answers, "cpu") / number
            remarks.append(f"{what}, {NAMES[name]}: {cpu:.0f} µs of CPU a message in its process")
        text = f"{what}: messages a second, against {NAMES['grpc']}"
        bars.append(Bar(text, "≥", 5, _ratio(turns), "x"))
    method = METHOD.format(
        version=VERSION, sent=SENT, size=SIZE, in_flight=IN_FLIGHT, consumed=CONSUMED
    )
    return Section("client_grpc", "Client: beside the gRPC client", method, series, bars, remarks)


Turns = Mapping[str, list[dict[str, Any]]]


def _turns(bench: Bench, runs: Mapping[str, Callable[[], dict[str, Any]]]) -> Turns:
    writes = stored(SENT, SIZE)
    return interleave(dict(runs), dropped=DROPPED, repetitions=bench.repetitions, writes=writes)


def _ratio(turns: Turns) -> float:
    return _median(turns["grpc"], "seconds") / _median(turns["mqlake"], "seconds")


def _median(answers: list[dict[str, Any]], name: str) -> float:
    return statistics.median(answer[name] for answer in answers)


def _peer(bench: Bench, name: str, python: Path, *words: object) -> Peer:
    log = bench.directory / f"{name}-peer"
    return Peer(name, [str(python), *map(str, words)], log, ROOT)


async def _begin(names: str, group: str) -> None:
    """Make a group, and commit offset 0 of each queue: the proxy begins a new group at the end."""
    async with Admin(names) as admin:
        await groups.update(admin, SubscriptionGroup(group_name=group), "DefaultCluster", None)
    async with PullConsumer(names, group) as consumer:
        queues = await consumer.queues_of("Backlog")
        consumer.assign(queues)
        for queue in queues:
            await consumer.seek(queue, 0)
        await consumer.commit()
