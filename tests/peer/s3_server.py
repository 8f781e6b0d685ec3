"""SeaweedFS: a server of S3's protocol and of Iceberg's REST catalog, on free ports."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.peer.python_build import environment
from tests.peer.rocketmq_cluster import free_ports
from tests.until import PATIENCE

SOURCE = Path(__file__).parent / "seaweedfs"
ACCESS, SECRET, REGION, BUCKET = "mqlake", "not-a-secret", "us-east-1", "stores"
TABLES = "tables"
"""The bucket of the REST catalog's tables."""


class S3Server:
    """A server with one bucket and one pair of keys.

    Attributes:
        endpoint: its URL.
        catalog: the URL of the REST catalog, which takes `ACCESS:SECRET` as its credential.
        settings: what reaches it, as options and `--set` take them.
    """

    def __init__(self, directory: Path) -> None:
        """Start it, and return once it has its bucket.

        Raises:
            PythonMissingError: it cannot be installed.
            RuntimeError: it has ended, or does not answer; with the end of what it said.
        """
        weed = environment(SOURCE).parent / "weed"
        data = directory / "data"
        data.mkdir(parents=True)
        keys = {"accessKey": ACCESS, "secretKey": SECRET}
        actions = ["Admin", "Read", "Write", "List"]
        identity = {"name": "tests", "credentials": [keys], "actions": actions}
        config = directory / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        ports = free_ports(9)
        names = ("master.port", "volume.port", "filer.port", "s3.port")
        options = [f"-{name}={port}" for name, port in zip(names, ports[:4], strict=True)]
        options += [f"-{name}.grpc={port}" for name, port in zip(names, ports[4:8], strict=True)]
        self.endpoint = f"http://127.0.0.1:{ports[3]}"
        self.catalog = f"http://127.0.0.1:{ports[8]}"
        self._shell = [weed, "shell", f"-master=127.0.0.1:{ports[0]}.{ports[4]}"]
        self.settings = {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.access.key": ACCESS,
            "fs.s3a.secret.key": SECRET,
        }
        self._log = directory / "weed.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    weed, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                    "-filer", "-s3", f"-s3.config={config}", f"-s3.port.iceberg={ports[8]}",
                    "-s3.port.lance=0", "-master.volumeSizeLimitMB=64", "-volume.max=40",
                    "-master.telemetry=false", *options,
                ],
                stdout=log,
                stderr=log,
                env={"HOME": str(directory), "PATH": os.environ["PATH"]},
            )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        from pyarrow.fs import S3FileSystem

        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no server of S3: {self._log.read_text()[-2000:]}")
            time.sleep(0.2)
        S3FileSystem(
            access_key=ACCESS,
            secret_key=SECRET,
            endpoint_override=self.endpoint,
            region=REGION,
            allow_bucket_creation=True,
        ).create_dir(BUCKET)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def make_catalog(self) -> None:
        """Create the bucket of the REST catalog's tables, and the namespace `mqlake` in it."""
        account = "-account 000000000000"
        command = f"s3tables.bucket -create -name {TABLES} {account}\n"
        command += f"s3tables.namespace -create -bucket {TABLES} -name mqlake {account}\n"
        done = subprocess.run(
            self._shell,
            input=command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert f"bucket/{TABLES}" in done.stdout, done.stdout + done.stderr

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
