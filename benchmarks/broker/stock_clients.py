"""RocketMQ's own benchmark Producer and Consumer against mqlake's broker and against Java's."""

from __future__ import annotations

import re
import statistics
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.peer.java_build import jars
from tests.peer.rocketmq_client import EXAMPLES

from benchmarks.bench import Bench, remove, say
from benchmarks.broker import backlog, sides
from benchmarks.broker.sides import Side, cpu_seconds, resident
from benchmarks.memory_state import touch_memory
from benchmarks.results import Bar, Section, Series

TITLES = {"java": "Java", "mqlake": "mqlake"}
BROKERS = {"java": sides.java, "mqlake": sides.mqlake}
JSON_HEADERS = Path(__file__).with_name("JsonHeaders.java")
"""A program that runs another one. Java compiles it first, in a second."""
PACKAGE = "org.apache.rocketmq.example.benchmark"
REPORT = 10
"""Seconds: what a report of these programs is the mean of."""
WARM_UP, CONSUMER_WARM_UP = 4, 1
"""Reports."""
BACKLOG = 12_000_000
"""Messages that the consumer finds."""
BACKLOG_TOPIC, GROUP = "BenchBacklog", "bench"
WRITTEN = 2 << 30
"""Bytes of files that a phase writes, about."""
TPS = re.compile(r"(?:Send MPS|Consume TPS|Send TPS): (\d+) \| (?:Max|AVG)")
LATENCY = re.compile(r"Average RT\(ms\): +([\d.]+)")
FAILED = re.compile(r"Fail(?:ed)?: ([1-9]\d*)")

METHOD = """\
The load is RocketMQ's own programs `{package}.Producer`, `BatchProducer` and `Consumer` of
release {release}, in a JVM of their own on the same two cores. They write binary headers;
"JSON headers" are what other clients of RocketMQ write. Both brokers run all the time. Each
phase runs against one broker, then against the other, with a new JVM for the clients. These
programs report every {report} s. The first {warm_up} reports are dropped, {consumer_warm_up} of the
consumer, and the figure is the median of the next {counted}, or of fewer if the consumer has read
its backlog before. Topics have 4 queues, messages have a key, `ASYNC_FLUSH`. The consumer begins at
the first of {backlog:,} messages of 128 B that were sent just before in batches of {batch}. CPU is
the user and system time of the broker's process, which includes a name server on both sides, for
the messages of the reports that count."""


class Phase(NamedTuple):
    """One run of a program."""

    title: str
    program: str
    options: tuple[str, ...]
    wanted: float
    """Minimum rate, or maximum latency for one thread, as a multiple of Java's."""
    warm_up: int = WARM_UP
    """Reports."""
    cpu: float = 0.3
    """Most CPU of the broker, as a multiple of Java's."""
    has_json: bool = False
    """Whether headers are JSON, as other clients write them, and not binary."""


LOADED = (
    Phase("64 threads, 128 B", "Producer", ("-t", "Bench128", "-s", "128", "-w", "64"), 1.5),
    Phase("64 threads, 1 KiB", "Producer", ("-t", "Bench1024", "-s", "1024", "-w", "64"), 1.5),
)
PHASES = (
    *LOADED,
    *(
        each._replace(title=f"{each.title}, JSON headers", wanted=1.4, cpu=0.35, has_json=True)
        for each in LOADED
    ),
    Phase("1 thread, 128 B", "Producer", ("-t", "Bench128", "-s", "128", "-w", "1"), 0.65),
    Phase(
        "batches of 32, 128 B",
        "BatchProducer",
        ("-t", "BenchBatch", "-s", "128", "-b", "32", "-w", "8"),
        1.0,
    ),
    Phase(
        "consumer", "Consumer", ("-t", BACKLOG_TOPIC, "-g", GROUP), 1.3, CONSUMER_WARM_UP, cpu=0.35
    ),
)


class Measured(NamedTuple):
    """What the reports of a phase say, and what the broker used meanwhile."""

    rates: list[float]
    latencies: list[float]
    """Milliseconds."""
    cpu: float
    """Seconds for a million messages."""
    memory: int


def measure(bench: Bench) -> Section:
    """Run all phases against both brokers."""
    homes = {name: bench.directory / f"broker-{name}" for name in BROKERS}
    brokers = {name: make(homes[name]) for name, make in BROKERS.items()}
    try:
        found = {
            (phase, name): run_phase(bench, phase, name, broker)
            for phase in PHASES
            for name, broker in brokers.items()
        }
    finally:
        for broker in brokers.values():
            broker.stop()
        for home in homes.values():
            remove(home)
    series = [
        Series(
            f"{phase.title}, {TITLES[name]}",
            "s",
            [1e6 / rate for rate in one.rates],
            {"messages": 1_000_000},
        )
        for (phase, name), one in found.items()
    ]
    bars = [bar for phase in PHASES for bar in _bars(phase, found)]
    remarks = [
        f"{phase.title}, {TITLES[name]}: {one.cpu:.1f} s of CPU for a million messages,"
        f" {one.memory >> 20} MiB"
        + (f", mean latency {statistics.median(one.latencies):.3f} ms" if one.latencies else "")
        for (phase, name), one in found.items()
    ]
    (jar,) = jars(EXAMPLES).glob("rocketmq-example-*.jar")
    method = METHOD.format(
        package=PACKAGE,
        release=jar.stem.removeprefix("rocketmq-example-"),
        report=REPORT,
        consumer_warm_up=CONSUMER_WARM_UP,
        backlog=BACKLOG,
        batch=backlog.A_BATCH,
        warm_up=WARM_UP,
        counted=bench.repetitions,
    )
    return Section("broker_clients", "Broker: stock clients", method, series, bars, remarks)


def _bars(phase: Phase, found: dict[tuple[Phase, str], Measured]) -> list[Bar]:
    java, mqlake = found[phase, "java"], found[phase, "mqlake"]
    rate = statistics.median(mqlake.rates) / statistics.median(java.rates)
    if phase.title.startswith("1 thread"):
        late = statistics.median(mqlake.latencies) / statistics.median(java.latencies)
        return [Bar(f"{phase.title}: mean latency, against Java's", "≤", phase.wanted, late, "x")]
    bars = [Bar(f"{phase.title}: messages a second, against Java's", "≥", phase.wanted, rate, "x")]
    if phase.program in ("Producer", "Consumer"):
        cpu = mqlake.cpu / java.cpu
        title = f"{phase.title}: CPU of the broker, against Java's"
        bars.append(Bar(title, "≤", phase.cpu, cpu, "x"))
    return bars


def run_phase(bench: Bench, phase: Phase, name: str, broker: Side) -> Measured:
    """Run one phase against a broker."""
    say(f" {phase.title}, {TITLES[name]}")
    path = ":".join(str(jar) for jar in sorted(jars(EXAMPLES).glob("*.jar")))
    command = [
        *("java", "-Xms1g", "-Xmx1g", f"-Duser.home={bench.directory}", "-cp", path),
        *([str(JSON_HEADERS)] if phase.has_json else []),
        *(f"{PACKAGE}.{phase.program}", "-n", broker.names, *phase.options),
        *("-ri", str(REPORT * 1000)),
    ]
    if phase.program == "Producer":
        command += ["-k", "true"]
    if phase.program == "Consumer":
        backlog.leave(broker.broker, BACKLOG_TOPIC, GROUP, BACKLOG, 128)
    else:
        touch_memory(WRITTEN)
    warm_up, rates = phase.warm_up, list[float]()
    latencies: list[float] = []
    cpu: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        assert program.stdout is not None
        for line in map(bytes.decode, program.stdout):
            if (rate := TPS.search(line)) is None:
                continue
            if FAILED.search(line):
                program.kill()
                raise RuntimeError(f"{TITLES[name]} failed: {line}")
            if rate[1] == "0":
                if not rates:
                    continue  # it has no queues yet
                # The backlog is consumed; the report before this one may be of less time.
                rates.pop()
                cpu.pop()
                break
            cpu.append(cpu_seconds(broker.process_id))
            rates.append(float(rate[1]))
            if latency := LATENCY.search(line):
                latencies.append(float(latency[1]))
            say(f"  {line.strip().partition('| ')[2]}")
            if len(rates) == warm_up + bench.repetitions:
                break
        program.kill()
    if len(rates) <= warm_up:
        raise RuntimeError(
            f"{phase.title}, {TITLES[name]}: {len(rates)} reports, of which {warm_up} do not count;"
            " enlarge BACKLOG"
        )
    messages = sum(rates[warm_up:]) * REPORT
    return Measured(
        rates[warm_up:],
        latencies[warm_up:],
        (cpu[-1] - cpu[warm_up - 1]) / messages * 1e6,
        resident(broker.process_id),
    )
