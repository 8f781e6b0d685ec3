"""A replica as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds: a busy machine has to start processes."""


class ReplicaProcess:
    """`mqlake replica`; its JSON lines and its log are beside the store."""

    def __init__(self, master: str, store: Path, names: str, *options: str) -> None:
        self._command = [sys.executable, "-m", "mqlake", "replica", master, "--store", str(store)]
        self._command += ["-n", names, "--json", "--every", "0.2", *options]
        self._lines, self._log = store.with_suffix(".json"), store.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it; with other options it acts otherwise."""
        with self._lines.open("wb") as lines, self._log.open("ab") as log:
            command = [*self._command, *options]
            self._process = subprocess.Popen(command, stdout=lines, stderr=log)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def status(self) -> dict[str, Any] | None:
        """Return its last line, None before the first."""
        lines = self._lines.read_bytes().split(b"\n")[:-1]
        return json.loads(lines[-1]) if lines else None

    def caught_up(self) -> None:
        """Return once it has all that the master has, by lines that come from now on."""
        until, since = time.monotonic() + PATIENCE, time.time() * 1000
        while time.monotonic() < until:
            found = self.status()
            # The master is asked once a second: what it had a moment ago does not count.
            is_new = found is not None and found["time"] > since + 2500
            if is_new and found["lagBytes"] == 0 and found["problem"] is None:
                return
            if not self.is_running:
                break
            time.sleep(0.05)
        raise RuntimeError(f"not caught up: {self.status()} {self._log.read_text()[-2000:]}")

    def stop(self) -> int:
        """Stop it in good order; return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
