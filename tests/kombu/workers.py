"""Celery workers as processes, and what they noted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.until import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
VISIBILITY = 4
"""Seconds until the workers of these tests lose what they do not acknowledge or extend. They extend
it after a third of them: a pause of the machine may be as long as the rest."""


class Notes:
    """What the workers noted: when tasks ran, when they ended, when they were acknowledged."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def times(self, event: str) -> dict[str, list[float]]:
        """Return the times of an event by task id."""
        found: dict[str, list[float]] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                kind, task, when = line.split()
                if kind == event:
                    found.setdefault(task, []).append(float(when))
        return found


def environment(url: str, notes: Path, **more: str) -> dict[str, str]:
    """Return the environment variables of a process that runs the tasks."""
    path = os.pathsep.join((str(ROOT), *sys.path))
    return {**os.environ, "BROKER_URL": url, "NOTES": str(notes), "PYTHONPATH": path, **more}


class Worker:
    """A worker, started; with its pool it is a process group of its own."""

    def __init__(
        self, name: str, log: Path, *options: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.log, self.host = log, f"{name}@test"
        self._begin = log.stat().st_size if log.exists() else 0
        command = [sys.executable, "-m", "celery", "-A", "tests.kombu.celery_tasks", "worker"]
        command += ["-n", self.host, "-l", "INFO", *(options or ("-c", "3", "-E"))]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True, env=env
            )

    def wait_until_ready(self) -> None:
        """Wait until it consumes."""
        ready = f"{self.host} ready".encode()
        wait_until(lambda: ready in self.log.read_bytes()[self._begin :], why=self.log.read_text)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Kill it with its pool, as a machine that loses power does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def kill_child(process: int) -> None:
    """Kill a process that another one has started, if there is one."""
    children: list[int] = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # a thread, or the process, may end meanwhile
            children += map(int, file.read_text().split())
    if children:
        with suppress(ProcessLookupError):
            os.kill(min(children), signal.SIGKILL)


@contextmanager
def worker(
    name: str, log: Path, *options: str, env: Mapping[str, str] | None = None
) -> Generator[Worker]:
    """Run a worker; kill it, and the processes that it started, in the end."""
    running = Worker(name, log, *options, env=env)
    try:
        yield running
    finally:
        running.kill()
