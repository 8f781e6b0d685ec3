"""Servers of Google's and Azure's object store protocols: fake-gcs-server and Azurite."""

from __future__ import annotations

import base64
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from mqlake.storage.remote.object_stores import filesystem_of
from tests.peer.node_build import build
from tests.peer.python_build import environment
from tests.peer.rocketmq_cluster import free_ports
from tests.until import PATIENCE

HERE = Path(__file__).parent
ACCOUNT, KEY, CONTAINER = "mqlake", base64.b64encode(b"not a secret").decode(), "lake"


class _Server:
    """A process that serves HTTP.

    Attributes:
        url: a place for tables.
        settings: what reaches it, as options and `--storage-option` take them.
    """

    url: str
    settings: dict[str, str]

    def __init__(self, command: list[str], port: int, log: Path, **variables: str) -> None:
        self._endpoint = f"http://127.0.0.1:{port}"
        with log.open("w") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env={"HOME": str(log.parent), "PATH": os.environ["PATH"], **variables},
            )
        deadline = time.monotonic() + PATIENCE
        while not _answers(self._endpoint):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"no server: {log.read_text()[-2000:]}")
            time.sleep(0.2)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class AzureServer(_Server):
    """Azurite, with one container.

    Raises:
        NodeMissingError: it cannot be installed.
    """

    def __init__(self, directory: Path) -> None:
        program = build(HERE / "azurite") / "node_modules/azurite/dist/src/blob/main.js"
        (port,) = free_ports(1)
        words = ["node", program, "--blobHost", "127.0.0.1", "--blobPort", port, "--silent"]
        words += ["--location", directory / "data", "--skipApiVersionCheck"]
        accounts = f"{ACCOUNT}:{KEY}"
        log = directory / "azurite.log"
        super().__init__([str(word) for word in words], port, log, AZURITE_ACCOUNTS=accounts)
        self.url = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"
        self.settings = {"fs.azure.abfs.endpoint": self._endpoint, "fs.azure.account.key": KEY}
        filesystem, path = filesystem_of(self.url, self.settings)
        filesystem.create_dir(path, recursive=True)


class GoogleServer(_Server):
    """fake-gcs-server, with one bucket. It lacks the requests by which delta-rs writes objects.

    Raises:
        PythonMissingError: it cannot be installed.
    """

    def __init__(self, directory: Path) -> None:
        python = environment(HERE / "fake_gcs")
        (program,) = python.parents[1].rglob("fake-gcs-server-linux-*")
        program.chmod(0o755)
        (port,) = free_ports(1)
        host = f"127.0.0.1:{port}"
        words = [program, "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1"]
        words += ["-port", port, "-external-url", f"http://{host}", "-public-host", host]
        super().__init__([str(word) for word in words], port, directory / "gcs.log")
        self.url = f"gs://{CONTAINER}"
        self.settings = {
            "fs.gs.storage.root.url": self._endpoint,
            "fs.gs.auth.type": "UNAUTHENTICATED",
        }
        request = urllib.request.Request(
            f"{self._endpoint}/storage/v1/b",
            b'{"name": "%s"}' % CONTAINER.encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=30).close()


def _answers(endpoint: str) -> bool:
    try:
        urllib.request.urlopen(endpoint, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
