"""HDFS: a name node and a data node of Apache Hadoop, in one JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import build
from tests.peer.java_start import java

SOURCE = Path(__file__).parent / "hdfs"
_STARTED = "port "


class Hdfs:
    """A cluster of one data node.

    Attributes:
        url: of its root, without the last slash.
    """

    def __init__(self, directory: Path) -> None:
        """Start it, and return once it serves.

        Raises:
            JavaMissingError: it cannot be built.
            RuntimeError: it has ended; with the end of what it said.
        """
        directory.mkdir(parents=True)
        log = directory / "hdfs.log"
        options = [*QUICK_START, "-Xmx512m"]
        command = java(build(SOURCE), options, "Hdfs", directory / "data")
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_STARTED):
                self.url = f"hdfs://127.0.0.1:{line.removeprefix(_STARTED).strip()}"
                return
        self.close()
        raise RuntimeError(f"no HDFS: {log.read_text()[-2000:]}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
