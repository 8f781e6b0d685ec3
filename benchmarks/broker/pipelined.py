"""How many sends a second one core answers, with a load generator that is not the limit."""

from __future__ import annotations

import asyncio
import os
from typing import NamedTuple

from benchmarks.bench import Bench, remove, say
from benchmarks.broker.load import QUEUES, Load, run
from benchmarks.broker.sides import MqlakeBroker, cpu_seconds
from benchmarks.memory_state import touch_memory
from benchmarks.results import Bar, Section, Series
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.header import Header
from mqlake.remoting.client import RemotingClient

SECONDS = 10.0
WRITTEN = 3 << 30
"""Approximate bytes of files that a round writes."""


class Sends(NamedTuple):
    """What is sent, and the target, in sends a second."""

    size: int
    headers: Serialization
    wanted: int = 80_000


LOADS = {
    "128 B": Sends(128, Serialization.ROCKETMQ, 500_000),
    "1 KiB": Sends(1024, Serialization.ROCKETMQ),
    "128 B, JSON headers": Sends(128, Serialization.JSON),
    "1 KiB, JSON headers": Sends(1024, Serialization.JSON),
}

METHOD = """\
The load is sends as RocketMQ's own benchmark programs write them (SEND_MESSAGE_V2, binary headers,
a unique key in each), and sends with JSON headers, which Java's clients write unless
`ROCKETMQ_SERIALIZE_TYPE` is set. They are encoded in advance, and sent
over {connections} connections with {window} in flight on each. Broker and load generator have one
core each. Topics have {queues} queues, `ASYNC_FLUSH`. Every send must be answered with SUCCESS, and
one second after the last one, queues and index must contain all messages."""


class _MaxOffset(Header):
    topic: str
    queue_id: int


class _Offset(Header):
    offset: int


def measure(bench: Bench) -> Section:
    """Send messages of each size for some seconds, several times."""
    cores = sorted(os.sched_getaffinity(0))
    series: list[Series] = []
    remarks: list[str] = []
    for title, (size, headers, _) in LOADS.items():
        home = bench.directory / "broker-pipelined"
        broker = MqlakeBroker(home)
        rates: list[float] = []
        try:
            os.sched_setaffinity(broker.process_id, cores[:1])
            os.sched_setaffinity(0, cores[1:] or cores)
            for number in range(bench.repetitions):
                topic = f"Load{number}"
                load = Load(broker.broker, size=size, seconds=SECONDS, topic=topic, headers=headers)
                touch_memory(WRITTEN)
                cpu = cpu_seconds(broker.process_id)
                found = run(load)
                cpu = (cpu_seconds(broker.process_id) - cpu) / found["total"] * 1e6
                asyncio.run(_check(load, int(found["total"])))
                rates.append(found["rate"])
                say(f" {title}: {found['rate']:.0f} sends a second, {cpu:.1f} µs of CPU each")
        finally:
            os.sched_setaffinity(0, cores)
            broker.stop()
            remove(home)
        series.append(Series(title, "s", [1e6 / rate for rate in rates], {"messages": 1_000_000}))
    bars = [
        Bar(f"{title}: sends a second", "≥", sends.wanted, 1e6 / one.median, "a second")
        for one, (title, sends) in zip(series, LOADS.items(), strict=True)
    ]
    method = METHOD.format(connections=Load.connections, window=Load.window, queues=QUEUES)
    return Section("broker_sends", "Broker: sends on one core", method, series, bars, remarks)


async def _check(load: Load, sent: int) -> None:
    """Raise unless queues and index have everything that was sent."""
    await asyncio.sleep(1)
    client = RemotingClient()
    there = 0
    for queue_id in range(QUEUES):
        header = _MaxOffset(topic=load.topic, queue_id=queue_id)
        answer = await client.call(load.address, request(RequestCode.GET_MAX_OFFSET, header))
        there += answer.header(_Offset).offset
    told = await client.call(load.address, request(RequestCode.GET_BROKER_RUNTIME_INFO))
    behind = decode_body(KVTable, told.body).table["dispatchBehindBytes"]
    await client.close()
    if there != sent or behind != "0":
        raise RuntimeError(f"{sent} sends, queues hold {there}, the index is {behind} bytes behind")
