"""A controller of the real RocketMQ, its name server, and brokers whose roles it decides."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.peer.java_build import build
from tests.peer.java_start import java, keep_classes
from tests.peer.rocketmq_cluster import CALM, PATIENT, QUICK, STOP, free_ports
from tests.peer.rocketmq_store import OPENED

SOURCE = Path(__file__).parent / "rocketmq_controller"
BROKER_SOURCE = Path(__file__).parent / "rocketmq_broker"


class _Program:
    """A Java program that runs from `start` until its standard input ends."""

    def __init__(self, directory: Path, source: Path, name: str, files: list[str]) -> None:
        directory.mkdir(exist_ok=True)
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        homes = [f"-Duser.home={directory}", f"-Drocketmq.home.dir={directory}"]
        self._command = java(build(source), [*QUICK, *opens, *homes], name, *files)
        self.log = directory / f"{name}.log"
        self.process: subprocess.Popen[str] | None = None

    def start(self, until: str = "") -> None:
        """Start it; return once it has said a line, if one is given.

        Raises:
            RuntimeError: it has ended; with the end of what it said.
        """
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        if not until:
            return
        assert self.process.stdout is not None
        said: list[str] = []
        for line in self.process.stdout:
            if line == f"{until}\n":
                return
            said.append(line)
        raise RuntimeError(f"not started: {said} {self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop it in good order."""
        process, self.process = self.process, None
        if process is None:
            return
        keep_classes(self._command, process.pid)
        try:
            process.communicate(timeout=STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise

    def kill(self) -> None:
        """End it at once."""
        process, self.process = self.process, None
        if process is not None:
            keep_classes(self._command, process.pid)
            process.kill()
            process.communicate()


class Controller(_Program):
    """A controller that leads, and a name server, in one JVM.

    Attributes:
        address: of the controller.
        names: of the name server.
    """

    def __init__(self, directory: Path) -> None:
        """Write its configuration.

        Raises:
            JavaMissingError: it cannot be built.
        """
        directory.mkdir(exist_ok=True)
        names, port = free_ports(2)
        self.address, self.names = f"127.0.0.1:{port}", f"127.0.0.1:{names}"
        server = {"listenPort": names, "kvConfigPath": directory / "kvConfig.json"}
        controller = {
            "controllerDLegerGroup": "group",
            "controllerDLegerPeers": f"n0-127.0.0.1:{port}",
            "controllerDLegerSelfId": "n0",
            "controllerStorePath": directory / "controller",
            "mappedFileSize": 1 << 20,
            "scanNotActiveBrokerInterval": 1000,
        }
        files: list[str] = []
        for name, values in (("namesrv.conf", server), ("controller.conf", controller)):
            path = directory / name
            path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            files.append(str(path))
        super().__init__(directory, SOURCE, "Controller", files)

    def start(self, until: str = "leads") -> None:
        """Start it; return once it leads."""
        super().start(until)


class Member(_Program):
    """A broker of RocketMQ in a group under a controller.

    Attributes:
        address: where it serves clients, once it has started.
    """

    def __init__(
        self, directory: Path, store: Path, controller: Controller, settings: Mapping[str, object]
    ) -> None:
        """Write its configuration.

        Raises:
            JavaMissingError: it cannot be built.
        """
        directory.mkdir(exist_ok=True)
        port, ha = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        values = {
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": port,
            "haListenPort": ha,
            "namesrvAddr": controller.names,
            "enableControllerMode": True,
            "controllerAddr": controller.address,
            "allAckInSyncStateSet": True,
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            "storePathEpochFile": store / "epochFileCheckpoint",
            "storePathBrokerIdentity": store / "brokerIdentity",
            **CALM,
            **PATIENT,
            **settings,
        }
        config = directory / "broker.conf"
        text = "".join(f"{name}={_text(value)}\n" for name, value in values.items())
        config.write_text(text)
        super().__init__(directory, BROKER_SOURCE, "Broker", ["-c", str(config)])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
