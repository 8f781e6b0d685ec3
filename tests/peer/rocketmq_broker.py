"""A whole RocketMQ broker on a store directory, for what only a broker does by itself.

It has no name server and no clients: it delivers delayed messages and asks for transactions.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes
from tests.peer.rocketmq_cluster import CALM, PATIENT, QUICK, free_ports
from tests.peer.rocketmq_store import OPENED

SOURCE = Path(__file__).parent / "rocketmq_broker"
STOP = 60
"""Seconds."""


class Broker:
    """A broker that runs while the block does, and is stopped in good order at its end."""

    def __init__(self, store: Path, directory: Path, settings: Mapping[str, object]) -> None:
        """Prepare it; `directory` is for its log and what it makes beside the store.

        Raises:
            JavaMissingError: it cannot be built.
        """
        self._log = directory / "broker.log"
        port, ha = free_ports(2)
        values = {
            "brokerName": "peer",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": port,
            "haListenPort": ha,
            "namesrvAddr": "127.0.0.1:1",
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            **CALM,
            **PATIENT,
            **settings,
        }
        config = directory / "broker.conf"
        config.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        homes = [f"-Duser.home={directory}", f"-Drocketmq.home.dir={directory}"]
        options = [*QUICK, *opens, *homes]
        self._command = java(build(SOURCE), options, "Broker", "-c", config)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it in good order.

        Raises:
            TimeoutExpired: it had to be killed.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        keep_classes(self._command, process.pid)
        process.stdin.close()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def kill(self) -> None:
        """End it at once; a broker that stops in good order takes its time."""
        assert self._process is not None
        keep_classes(self._command, self._process.pid)
        self._process.kill()
        self._process.wait()

    def copy_tables(self) -> None:
        """Have a slave copy its master's tables now; by itself it does so after a minute."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def check(self) -> None:
        """Say why, if it has ended by itself.

        Raises:
            RuntimeError: it has; with the end of what it said.
        """
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"no broker: {self._log.read_text()[-2000:]}")
