"""docs/compatibility.md: RocketMQ's own integration tests, method by method."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from tests.peer.compatibility.java_class import FAILED, IGNORED, LIMIT, PASSED, Outcome
from tests.peer.compatibility.record import Record, circumstances, load, reasons
from tests.peer.compatibility.run import RELEASE
from tests.peer.compatibility.servers import JAVA, MQLAKE

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"

_HEAD = """\
# Compatibility with RocketMQ's integration tests

*For teams that move from RocketMQ: the results of RocketMQ's own integration tests against mqlake
and against Java's brokers.*

**{passed} of {run} test methods pass against mqlake, {java} of {java_run} against RocketMQ
{release} itself.** A method marked "not run" was not part of the last runs on that side.

The tests are the compiled classes of `org.apache.rocketmq:rocketmq-test:{release}`, unchanged, with
RocketMQ's Java clients. Against Java's brokers, a name server and three brokers run in the process
of the test. Against mqlake, a replacement for the tests' base class comes first on the class path:
it connects the tests to one `mqlake namesrv` and three `mqlake broker` processes. If a test uses
the Java object of a broker, this class sends a request to the broker's process instead:
`updateBrokerConfig` for settings (without effect if mqlake does not have the setting), and queries
for offsets, topics, queue entries and watermarks. If a test restarts a broker, this class restarts
the process. If a test sets a hook for a broker's requests, the client that sends these requests
calls the hook. Each test class has a JVM of its own. A method may take {limit:.0f} seconds, and is
repeated once if it fails.

RocketMQ's two classes of gRPC tests start a proxy in the process of the test, in cluster and in
local mode, and then do the same. Against mqlake, one class does so at `mqlake proxy` before three
brokers, and at `mqlake broker --grpc-port`.

Tests that RocketMQ itself ignores are left out unless they pass against mqlake, and so are the
tests of broker containers, DLedger and the controller.

`python -m tests.peer.compatibility --nightly` runs all of them and writes this page;
`make test` runs a fast selection.
"""


def page(record: Record, why: dict[str, str]) -> str:
    """Return the page."""
    counts = {side: _passed(record, side) for side in (MQLAKE, JAVA)}
    runs = {side: _run(record, side) for side in counts}
    head = _HEAD.format(
        passed=counts[MQLAKE],
        run=runs[MQLAKE],
        java=counts[JAVA],
        java_run=runs[JAVA],
        release=RELEASE,
        limit=LIMIT,
    )
    notes = [f"{circumstances()}\n"] if circumstances() else []
    return "\n".join([head, *notes, *_differences(record, why), *_classes(record)])


def write() -> None:
    """Write the page of what is recorded."""
    PAGE.write_text(page(load(), reasons()))


def _passed(record: Record, side: str) -> int:
    return sum(side in sides and sides[side].state == PASSED for sides in record.values())


def _run(record: Record, side: str) -> int:
    return sum(side in sides and sides[side].state != IGNORED for sides in record.values())


def _state(record: Record, name: str, side: str) -> str:
    outcome = record[name].get(side)
    return outcome.state if outcome else "not run"


def _differences(record: Record, why: dict[str, str]) -> list[str]:
    rows: list[str] = []
    for name, sides in record.items():
        if any(outcome.state == FAILED for outcome in sides.values()):
            states = " | ".join(_state(record, name, side) for side in (MQLAKE, JAVA))
            words = why.get(name) or _error(sides)
            rows.append(f"| `{name.replace('#', '` `')}` | {states} | {words} |")
    titles = f"| test | {MQLAKE} | {JAVA} | why |"
    return ["## Methods that fail", "", titles, "| --- | --- | --- | --- |", *rows, ""]


def _error(sides: Mapping[str, Outcome]) -> str:
    """Return what failed against Java's brokers; of mqlake's failures, `reasons` must say why."""
    error = sides[JAVA].reason if JAVA in sides else ""
    return f"RocketMQ: `{error.replace('|', ' ').replace('`', ' ')}`"


def _classes(record: Record) -> list[str]:
    lines = ["## All methods", ""]
    for name, methods in groupby(record, key=lambda each: each.partition("#")[0]):
        lines += [f"### {name}", "", f"| method | {MQLAKE} | {JAVA} |", "| --- | --- | --- |"]
        for method in methods:
            states = " | ".join(_state(record, method, side) for side in (MQLAKE, JAVA))
            lines.append(f"| `{method.partition('#')[2]}` | {states} |")
        lines.append("")
    return lines
