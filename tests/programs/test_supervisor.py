"""What a program tells systemd, read from the socket that systemd would read."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mqlake.programs.supervisor import Supervisor
from tests.broker.running import PATIENCE
from tests.programs.processes import BrokerProcess
from tests.until import until

UNITS = Path(__file__).parents[2] / "examples" / "service"


class Systemd:
    """A socket for a program's messages, in a directory or, with "@", without a file."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + path[1:] if path.startswith("@") else path)
        self._socket.setblocking(False)
        self.environment = {"NOTIFY_SOCKET": path}
        self.told: list[str] = []

    def read(self) -> list[str]:
        """Return all messages so far."""
        while True:
            try:
                self.told.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.told

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_is_notified_of_start_and_end_in_order(tmp_path: Path, is_abstract: bool) -> None:
    systemd = Systemd(f"@{tmp_path}/notify" if is_abstract else str(tmp_path / "notify"))

    async def check() -> None:
        with Supervisor(systemd.environment) as supervisor:
            supervisor.ready()
            supervisor.stopping()

    asyncio.run(check())
    assert systemd.read() == ["EXTEND_TIMEOUT_USEC=30000000", "READY=1", "STOPPING=1"]
    systemd.close()


def test_the_watchdog_hears_something_again_and_again_while_the_loop_runs(tmp_path: Path) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    environment = {
        **systemd.environment,
        "WATCHDOG_USEC": "30000",
        "WATCHDOG_PID": str(os.getpid()),
    }

    async def check() -> None:
        with Supervisor(environment) as supervisor:
            # Both go on during the start: recovery may take long.
            await until(lambda: min(told("WATCHDOG=1"), told("EXTEND_TIMEOUT_USEC=30000000")) > 2)
            supervisor.ready()
            asked, heard = told("EXTEND_TIMEOUT_USEC=30000000"), told("WATCHDOG=1")
            await until(lambda: told("WATCHDOG=1") > heard + 2)
            assert told("EXTEND_TIMEOUT_USEC=30000000") == asked

    def told(message: str) -> int:
        return Counter(systemd.read())[message]

    asyncio.run(check())
    systemd.close()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": "/no/such/socket", "WATCHDOG_USEC": "10000"},
        {"WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "10", "WATCHDOG_PID": "1"},
    ],
)
def test_without_a_supervisor_that_listens_nothing_happens(environment: dict[str, str]) -> None:
    async def check() -> None:
        with Supervisor(environment) as supervisor:
            supervisor.ready()
            await asyncio.sleep(0)
            supervisor.stopping()

    asyncio.run(check())


def test_a_broker_tells_when_it_serves_and_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    process = BrokerProcess(tmp_path / "store", tmp_path / "log", {})
    asyncio.run(until(lambda: "READY=1" in systemd.read()))
    assert process.stop() == 0
    assert systemd.read()[-1] == "STOPPING=1"
    systemd.close()


@pytest.mark.parametrize("program", ["broker", "namesrv"])
def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path, program: str) -> None:
    name = f"mqlake-{program}.service"
    text = (UNITS / name).read_text()
    assert "Type=notify" in text
    (command,) = re.findall(r"^ExecStart=/opt/mqlake/bin/mqlake (.*)$", text, re.MULTILINE)
    assert command == f"{program} --config /etc/mqlake/{program}.conf"
    if program == "broker":
        # It can write nothing beside the package, and /tmp is another one after each start.
        (cache,) = re.findall(r"^Environment=NUMBA_CACHE_DIR=/var/cache/(.*)$", text, re.MULTILINE)
        assert f"\nCacheDirectory={cache}\n" in text
    if shutil.which("systemd-analyze"):
        unit = tmp_path / name
        unit.write_text(text.replace("/opt/mqlake/bin/mqlake", sys.executable))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert name not in done.stderr, done.stderr
