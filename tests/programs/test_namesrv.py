"""`mqlake namesrv` as a process: its file, its port, its end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.programs.ports import free_port
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.namesrv import PutKVConfigHeader
from mqlake.remoting.client import RemotingClient
from tests.broker.running import PATIENCE

COMMAND = (sys.executable, "-m", "mqlake", "namesrv")


async def change(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the name server; set a value, and change a setting."""
    client = RemotingClient()
    header = PutKVConfigHeader(namespace="N", key="k", value="v")
    while process.poll() is None:
        try:
            await client.call(address, request(RequestCode.PUT_KV_CONFIG, header), PATIENCE)
            break
        except MqlakeError:
            await asyncio.sleep(0.02)
    update = request(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"waitSecondsForService=7")
    await client.call(address, update, PATIENCE)
    await client.close()


def test_settings_come_from_the_file_and_go_there(tmp_path: Path) -> None:
    port, kv, log = free_port(), tmp_path / "kv.json", tmp_path / "log"
    config = tmp_path / "namesrv.conf"
    config.write_text(f"listenPort=1\nkvConfigPath={kv}\nnoSuchName=1\n")
    with log.open("w") as output:
        process = subprocess.Popen([*COMMAND, "-c", config, "--port", str(port)], stderr=output)
    try:
        asyncio.run(change(f"127.0.0.1:{port}", process))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
    assert '"k":"v"' in kv.read_text()
    assert "listenPort=1\n" in config.read_text()  # The port was an option of the command.
    assert "waitSecondsForService=7\n" in config.read_text()
    said = log.read_text()
    assert "setting noSuchName is not known" in said
    assert f"name server listens on 127.0.0.1:{port}" in said
    assert said.splitlines()[-1].endswith("stopped")


def test_a_name_server_that_cannot_start_prints_one_line(tmp_path: Path) -> None:
    kv = tmp_path / "kv.json"
    kv.write_text("[")
    for option, reason in (
        (["--set", "listenPort"], "--set needs NAME=VALUE"),
        (["--set", "listenPort=x"], "listenPort"),
        (["--set", f"kvConfigPath={kv}"], f"{kv}: "),
    ):
        done = subprocess.run([*COMMAND, *option], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("mqlake: ")
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1
