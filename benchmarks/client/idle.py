"""What the client costs before it does anything: import, memory, processor time."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

from benchmarks.bench import Bench
from benchmarks.broker.sides import cpu_seconds, environment, whole_resident
from benchmarks.client.sides import a_broker
from benchmarks.results import Bar, Section, Series

SECONDS = 20
_TIMED = """\
import time
begun = time.perf_counter()
from mqlake.client import {}
print(time.perf_counter() - begun)
"""
_ALL = "Producer, Consumer, PullConsumer, SimpleConsumer"
_IDLE = """\
import asyncio, sys
from mqlake.client import Consumer, Producer

async def main():
    async with Producer(sys.argv[1]), Consumer(sys.argv[1], "idle", "Idle"):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""

METHOD = """\
Import: `from mqlake.client import …` of all four classes in a new process whose modules are
compiled. Idle: a process with a producer and a consumer that are connected to a broker and idle for
{seconds} seconds."""


def measure(bench: Bench) -> Section:
    """Measure imports and an idle client."""
    compiled = environment(bench.directory / "idle")
    imports = [_import(compiled) for _ in range(2 * bench.repetitions + 1)][1:]
    with a_broker(bench) as broker:
        command = [sys.executable, "-c", _IDLE, broker.names]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=compiled) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdout.readline()
            time.sleep(2)
            before = cpu_seconds(client.pid)
            time.sleep(SECONDS)
            share = (cpu_seconds(client.pid) - before) / SECONDS
            memory = whole_resident(client.pid)
            client.stdin.close()
    series = [Series("import", "s", imports), Series("resident memory", "B", [float(memory)])]
    bars = [
        Bar("import", "<", 100, 1000 * statistics.median(imports), "ms"),
        Bar("memory of a connected client", "<", 60, memory / (1 << 20), "MiB"),
        Bar("CPU of an idle client", "<", 1, 100 * share, "%"),
    ]
    method = METHOD.format(seconds=SECONDS)
    return Section("client_idle", "Client: idle", method, series, bars)


def _import(env: Mapping[str, str]) -> float:
    command = [sys.executable, "-c", _TIMED.format(_ALL)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return float(found.stdout)
