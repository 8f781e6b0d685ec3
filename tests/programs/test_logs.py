"""The log of a server: JSON, and what each thread is doing."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import msgspec

from tests.programs.processes import BrokerProcess
from tests.until import until


class Process(BrokerProcess):
    """A broker that logs JSON."""

    def start(self) -> None:
        self._command += ["--log-format", "json"]
        super().start()


def test_each_event_is_one_object(tmp_path: Path) -> None:
    process = Process(tmp_path / "store", tmp_path / "log", {"noSuchName": 1})
    assert process.stop() == 0
    lines = [msgspec.json.decode(line) for line in process.log.read_text().splitlines()]
    assert {line["level"] for line in lines} >= {"INFO", "WARNING"}
    assert lines[-1]["message"] == "stopped"
    assert lines[-1]["logger"] == "mqlake.programs.serve"
    assert all(isinstance(line["time"], int) for line in lines)


def test_sigusr1_writes_what_each_thread_is_doing(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "store", tmp_path / "log", {})
    process.process.send_signal(signal.SIGUSR1)

    def is_written() -> bool:
        text = process.log.read_text()
        return "Current thread" in text and "serve.py" in text

    asyncio.run(until(is_written))
    assert process.process.poll() is None, "the broker goes on"
    assert process.stop() == 0
