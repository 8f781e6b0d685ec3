"""A process that is measured: it answers requests, one line each way, and keeps itself warm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


class PeerError(Exception):
    """A peer that could not be started, died, or could not do what it was asked."""


class Peer:
    """A child process. A request is words joined by tabs; an answer is a JSON object a line."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, directory: Path = ROOT
    ) -> None:
        """Start `command` in `directory`; what it says on stderr goes to the file `log`."""
        self.name = name
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                cwd=directory,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *words: object) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            PeerError: the peer ended, or answered with an error.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("\t".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        for line in self._process.stdout:
            if line.startswith("{"):  # libraries may write lines of their own to stdout
                answer = json.loads(line)
                if "error" in answer:
                    raise PeerError(f"{self.name}: {answer['error']}")
                return answer
        raise self._ended()

    def close(self) -> None:
        """End the process: it stops by itself when its input ends, and is killed if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def kill(self) -> None:
        """End the process at once, as kill -9 does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _ended(self) -> PeerError:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return PeerError(f"{self.name} ended: {' | '.join(lines[-5:]) or 'it said nothing'}")
