"""The proxy of RocketMQ 5.5 for gRPC clients, in a JVM of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes
from tests.peer.rocketmq_cluster import free_ports

SOURCE = Path(__file__).parent / "rocketmq_proxy"
_STARTED = "startup successfully"


class Proxy:
    """A proxy in cluster mode.

    Attributes:
        endpoint: where gRPC clients connect to.
    """

    def __init__(self, directory: Path, names: str, options: tuple[str, ...] = ("-Xmx1g",)) -> None:
        """Start it, and return once it listens.

        Args:
            directory: for its files.
            names: of the name server.

        Raises:
            JavaMissingError: it cannot be built.
            RuntimeError: it has ended; with the end of what it said.
        """
        directory.mkdir(parents=True, exist_ok=True)
        port, remoting = free_ports(2)
        self.endpoint = f"127.0.0.1:{port}"
        config = directory / "rmq-proxy.json"
        values = {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": names,
            "grpcServerPort": port,
            "remotingListenPort": remoting,
            "localServeAddr": "127.0.0.1",
            "useEndpointPortFromRequest": True,
            "transactionHeartbeatPeriodSecond": 1,  # until then, no broker can ask a producer
        }
        config.write_text(json.dumps(values))
        homes = [f"-Duser.home={directory}", f"-Drocketmq.home.dir={directory}"]
        words = ("-n", names, "-pc", config, "-pm", "CLUSTER")
        self._command = java(build(SOURCE), [*options, *homes], "Proxy", *words)
        log = directory / "proxy.log"
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        said: list[str] = []
        for line in self._process.stdout:
            if _STARTED in line:
                return
            said.append(line)
        raise RuntimeError(f"no proxy: {said[-5:]} {log.read_text()[-2000:]}")

    def close(self) -> None:
        """End it."""
        keep_classes(self._command, self._process.pid)
        self._process.kill()
        self._process.communicate()
