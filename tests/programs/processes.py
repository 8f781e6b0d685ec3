"""The broker as a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.broker.running import PATIENCE, SMALL, next_port


class BrokerProcess:
    """`mqlake broker`, started and listening; its log is in `log`.

    Args:
        patch: Python statements that the process runs first: faults to inject.
        config: a broker.conf.

    Attributes:
        address, name_server: where it listens, "ip:port".
        program: the module that is run.
    """

    program = "mqlake"

    def __init__(
        self,
        store: Path,
        log: Path,
        settings: Mapping[str, object],
        patch: str = "",
        config: Path | None = None,
    ) -> None:
        port, names = next_port(), next_port()
        self.address, self.name_server = f"127.0.0.1:{port}", f"127.0.0.1:{names}"
        self.log = log
        code = f"{patch}\nimport runpy; runpy.run_module({self.program!r}, run_name='__main__')"
        command = [sys.executable, *(["-c", code] if patch else ["-m", self.program])]
        command += ["broker", "--store", str(store)]
        command += ["--config", str(config)] if config else []
        command += ["--port", str(port), "--namesrv-port", str(names)]
        for name, value in {**SMALL, **settings}.items():
            command += ["--set", f"{name}={value}"]
        self._command, self._port = command, port
        self.start()

    def start(self) -> None:
        """Start it again, once it has ended: at the same addresses, on the same store."""
        with self.log.open("a") as output:
            self.process = subprocess.Popen(self._command, stderr=output)
        self._wait(self._port)

    def _wait(self, port: int) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        self.kill()
        raise RuntimeError(f"no broker: {self.log.read_text()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it in good order; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
