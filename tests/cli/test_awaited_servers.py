"""Commands report which servers they wait for."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from mqlake import pace
from mqlake.broker.broker import Broker
from mqlake.cli.app import COMMANDS, run
from mqlake.cli.progress import AwaitedReport
from mqlake.client.awaited_servers import AwaitedServers, watched_servers
from mqlake.client.cluster import Cluster
from mqlake.protocol.codes import RequestCode
from mqlake.testing import RunningBroker, broker
from tests.console.silent_broker import silent_broker
from tests.crash.clock import ManualClock
from tests.until import until, wait_until

WAITS = {
    "produce orders FILE -n SILENT",
    "consume orders -n SILENT",
    "tail orders -n SILENT",
    "admin topicList -n SILENT",
    "admin updateTopic -t orders -b SILENT",
    "follow STORE --to delta --out OUT --replica-of-cluster c -n SILENT --once",
    "replica broker-a --store STORE --once -n SILENT",
    "replica SILENT --store STORE --once",
}
"""Commands that wait for a server before they do anything else."""

ELSEWHERE = {
    "broker": "logs what it waits for",
    "namesrv": "asks nobody",
    "proxy": "logs what it waits for",
    "console": "logs what it waits for",
    "doctor": "reports the name servers from the start",
    "inspect": "reports what it reads",
    "query": "reports what it reads",
    "retention": "reports what it reads",
    **dict.fromkeys(("verify", "rebuild", "export", "convert", "archive"), "shows its progress"),
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Return a terminal in the place of stderr, on which lines about waits come at once."""
    written = _Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(pace, "PACE", 0.01)
    return written


@contextmanager
def silent_until(holds: Callable[[str], bool]) -> Generator[str]:
    """Yield the address of a server that accepts connections, and closes them all, without a word,
    once a condition on that address holds.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        connections: list[socket.socket] = []

        def close() -> None:
            wait_until(lambda: holds(address))
            server.shutdown(socket.SHUT_RDWR)  # Further connections are refused.
            for connection in connections:
                connection.close()

        def accept() -> None:
            while True:
                try:
                    connections.append(server.accept()[0])
                except OSError:
                    return

        threads = [threading.Thread(target=work) for work in (accept, close)]
        for thread in threads:
            thread.start()
        yield address
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("line", sorted(WAITS))
def test_a_command_reports_the_server_that_it_waits_for(
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    stderr = terminal(monkeypatch)
    caplog.set_level("INFO")

    def is_reported(address: str) -> bool:
        return f"waiting for {address}, " in stderr.getvalue() + caplog.text

    lines = tmp_path / "lines"
    lines.write_text("a message\n")
    with silent_until(is_reported) as address:
        places = {
            "SILENT": address,
            "FILE": str(lines),
            "STORE": str(tmp_path / "store"),
            "OUT": str(tmp_path / "table"),
        }
        assert run([places.get(word, word) for word in line.split()]) == 2
        assert is_reported(address)


def test_a_member_of_a_group_reports_the_name_server_and_waits_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stderr = terminal(monkeypatch)

    def is_reported(address: str) -> bool:
        if f"waiting for {address}, " not in stderr.getvalue():
            return False
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    with silent_until(is_reported) as address:
        assert run(["consume", "orders", "--group", "g", "-n", address]) == 0


def test_every_command_waits_here_or_reports_elsewhere() -> None:
    assert {line.split()[0] for line in WAITS} | set(ELSEWHERE) == {*COMMANDS, "admin"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker(brokerName="broker-a") as found:
        yield found


def test_produce_reports_a_broker_that_does_not_acknowledge(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stderr = terminal(monkeypatch)
    lines = tmp_path / "lines"
    lines.write_text("a message\n")
    stack, names = AsyncExitStack(), running.name_server

    async def register(_: Broker) -> str:
        return await stack.enter_async_context(silent_broker(names, "unacknowledged", "other"))

    async def leave(_: Broker) -> None:
        await stack.aclose()

    address = running.call(register)

    def end() -> None:
        wait_until(lambda: f"waiting for {address}, " in stderr.getvalue())
        running.call(leave)

    ending = threading.Thread(target=end)
    ending.start()
    assert run(["produce", "unacknowledged", str(lines), "-n", names]) == 2
    ending.join()


def test_nothing_is_reported_without_a_terminal(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PACE", 0.0)
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    assert run(["admin", "topicList", "-n", running.name_server]) == 0
    assert written.getvalue() == ""


def test_a_line_comes_within_two_seconds_and_then_again() -> None:
    clock, lines = ManualClock(), list[str]()
    servers = AwaitedServers(clock)
    report = AwaitedReport(servers, lines.append, clock)
    with servers.awaiting("10.0.0.5:9876"):
        _pass(report, clock, 2_000)
        assert lines == ["waiting for 10.0.0.5:9876, 2 s"]
        with servers.awaiting("10.0.0.6:10911"):
            _pass(report, clock, 1_500)
            assert lines[1:] == ["waiting for 10.0.0.5:9876 and 1 more, 3 s"]
    _pass(report, clock, 60_000)
    assert len(lines) == 2


def test_waits_that_follow_each_other_are_reported_if_each_is_long_enough() -> None:
    clock, lines = ManualClock(), list[str]()
    servers = AwaitedServers(clock)
    report = AwaitedReport(servers, lines.append, clock, shortest=0.02)
    for _ in range(10):
        with servers.awaiting("10.0.0.5:9876"):
            _pass(report, clock, 200)
    assert lines


def test_a_command_that_reports_something_else_reports_no_wait() -> None:
    clock, lines = ManualClock(), list[str]()
    servers = AwaitedServers(clock)
    report = AwaitedReport(servers, lines.append, clock, spoke=clock.monotonic)
    with servers.awaiting("10.0.0.5:9876"):
        _pass(report, clock, 10_000)
    assert lines == []


def _pass(report: AwaitedReport, clock: ManualClock, milliseconds: int) -> None:
    """Let time pass, with the looks of `reported_servers`."""
    for _ in range(milliseconds // 100):
        clock.forward(100)
        if clock.milliseconds() % 500 == 0:
            report.look()


def test_a_server_is_awaited_until_it_answers() -> None:
    async def ask() -> None:
        with watched_servers() as servers, silent_until(lambda _: done.is_set()) as address:
            async with Cluster(address) as cluster:
                asking = asyncio.create_task(cluster.ask_names(RequestCode.GET_BROKER_CLUSTER_INFO))
                await until(lambda: address in servers.seconds())
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                assert servers.seconds() == {}
                done.set()

    done = threading.Event()
    asyncio.run(ask())
