"""What the benchmarks of the live store put, and where: the same for mqlake and Java."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, remove
from benchmarks.peer import Peer

PEERS = {"java": "java", "mqlake": "live"}
TITLES = {"java": "Java", "mqlake": "mqlake"}


class PeerStore:
    """A store directory of one side, "java" or "mqlake", which may have it open."""

    def __init__(self, bench: Bench, name: str, peer: Peer | None = None, **settings: str) -> None:
        """Name a directory, and the settings to open it with; `peer` may be one of its own."""
        self.path = bench.directory / f"live-{name}"
        self.peer = peer or bench.peer(PEERS[name])
        self._settings = json.dumps(settings)

    def open(self) -> dict[str, Any]:
        """Open the directory, made where there is none, until all is dispatched."""
        return self.peer.ask("open", self.path, self._settings)

    def put(self, **load: int) -> dict[str, Any]:
        """Put a load of messages; `tests/peer/rocketmq/PutLoad.java` says what is what."""
        return self.peer.ask("put-load", json.dumps(load))

    def close(self) -> None:
        """Close the store, and keep its files."""
        self.peer.ask("close")

    def remove(self) -> None:
        """Remove the files."""
        remove(self.path)

    def copy(self, source: Path) -> None:
        """Have a copy of a store, in the page cache; what was there before goes."""
        self.remove()
        subprocess.run(["cp", "-a", "--sparse=always", str(source), str(self.path)], check=True)
        os.sync()
