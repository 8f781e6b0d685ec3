"""The console of a broker: a process of its own, which ends with the broker."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import msgspec
import pytest

from mqlake.console.options import ConsoleOptions
from mqlake.errors import MqlakeError
from mqlake.programs import console
from mqlake.programs.console import check_console_installed
from mqlake.programs.ports import free_port
from mqlake.testing import broker
from tests.tls.certificates import Authority
from tests.until import until, wait_until


def opened(port: int) -> str:
    """Return the first page, empty while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/cluster") as answer:
            return answer.read().decode()
    except OSError:
        return ""


def listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def test_serves_pages_while_the_broker_runs(tmp_path: Path) -> None:
    port = free_port()
    with broker(tmp_path, consolePort=port):
        wait_until(lambda: "broker-a" in opened(port))
    assert opened(port) == ""


def test_uses_tls_as_the_broker_does(tmp_path: Path, authority: Authority) -> None:
    port = free_port()
    with broker(tmp_path, consolePort=port, **authority.settings()):
        wait_until(lambda: "broker-a" in opened(port))


def test_ends_when_its_broker_is_gone() -> None:
    async def run() -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mqlake.programs.console"),
            stdin=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        options = ConsoleOptions(name_servers="127.0.0.1:1", port=free_port())
        process.stdin.write(msgspec.json.encode(options, enc_hook=str) + b"\n")
        process.stdin.close()
        return await process.wait()

    assert asyncio.run(run()) in (0, -signal.SIGTERM)  # The latter if it had not begun to serve.


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "find_spec", lambda _: None)
    with pytest.raises(MqlakeError, match=r"consolePort: .*pip install 'mqlake\[console\]'"):
        check_console_installed()


def test_nothing_of_it_is_loaded_unless_the_port_is_set() -> None:
    code = (
        "import sys; import mqlake.programs.broker;"
        "print([name for name in sys.modules if name.startswith(('mqlake.console', 'starlette'))])"
    )

    async def run() -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0]

    assert asyncio.run(run()).strip() == b"[]"


def test_stops_cleanly_while_its_broker_runs() -> None:
    port = free_port()

    async def run() -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mqlake.programs.console"),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        options = ConsoleOptions(name_servers="127.0.0.1:1", port=port)
        process.stdin.write(msgspec.json.encode(options, enc_hook=str) + b"\n")
        await until(lambda: asyncio.to_thread(listens, port))
        process.terminate()
        _, written = await process.communicate()
        return process.returncode or 0, written.decode()

    code, written = asyncio.run(run())
    assert code == 0
    assert "Fatal" not in written
