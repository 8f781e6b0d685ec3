"""One run: tasks are sent while workers and the broker are killed, and what must be true then."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

import mqlake.kombu  # noqa: F401 (registers the scheme)
from tests.kombu.kills.plan import Kill, draw
from tests.kombu.workers import Notes, Worker, environment, kill_child
from tests.programs.forked import ForkedBroker

KILLS = 10
"""Kills of a run."""
WORKERS = 2
DRAIN = 60.0
"""Seconds until all tasks must have run and be acknowledged once the kills are over."""
PAUSE = 0.01
"""Seconds between two tasks."""
LONGEST_TASK = 0.15
OPTIONS = ("-c", "2", "--without-mingle", "--without-gossip", "--without-heartbeat")
TASK = "tests.kombu.celery_tasks.work"


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        returned: tasks for which `delay()` returned.
        failed: tasks for which it raised.
        runs: runs of tasks that ended.
        duplicates: those of them that repeat another one.
        drained: seconds from the last kill until everything was done and acknowledged.
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    returned: int = 0
    failed: int = 0
    runs: int = 0
    duplicates: int = 0
    drained: float = 0.0
    seconds: float = 0.0


def command(seed: int) -> str:
    """Return the command that runs a seed again."""
    return f"python -m tests.kombu.kills --runs 1 --seed {seed}"


def run(seed: int, kills: int = KILLS) -> Outcome:
    """Run one seed."""
    begun, outcome = time.monotonic(), Outcome(seed)
    with tempfile.TemporaryDirectory(prefix="mqlake-kills-") as directory, ExitStack() as undo:
        _Run(outcome, Path(directory), undo).run(kills)
    outcome.seconds = time.monotonic() - begun
    return outcome


def _stops(worker: Worker) -> bool:
    """Ask a worker to stop; return whether it did, in time."""
    try:
        return worker.stop(signal.SIGTERM) == 0
    except subprocess.TimeoutExpired:
        worker.kill()
        return False


class _Sender(threading.Thread):
    """Sends tasks until it is stopped."""

    def __init__(self, app: Any, seed: int) -> None:
        super().__init__(name="sender", daemon=True)
        self._app, self._dice = app, random.Random(seed)
        self._stopping = threading.Event()
        self.returned: set[str] = set()
        self.failed = 0

    def run(self) -> None:
        while not self._stopping.wait(PAUSE):
            try:
                sent = self._app.send_task(TASK, (self._dice.uniform(0.0, LONGEST_TASK),))
            except OperationalError:
                self.failed += 1
            else:
                self.returned.add(sent.id)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class _Run:
    def __init__(self, outcome: Outcome, directory: Path, undo: ExitStack) -> None:
        self._outcome, self._directory = outcome, directory
        self._broker = ForkedBroker(directory / "store", directory / "broker.log", {})
        undo.callback(self._broker.kill)
        url = f"rocketmq://{self._broker.name_server}/"
        self._notes = Notes(directory / "notes")
        self._environment = environment(url, self._notes.path)
        self._app = undo.enter_context(Celery("sender", broker=url, set_as_current=False))
        self._workers = [self._start(number) for number in range(WORKERS)]
        undo.callback(lambda: [worker.kill() for worker in self._workers])

    def _start(self, number: int) -> Worker:
        log = self._directory / f"worker-{number}.log"
        return Worker(f"worker-{number}", log, *OPTIONS, env=self._environment)

    def run(self, kills: int) -> None:
        """Run the plan, and note the outcome."""
        sender = _Sender(self._app, self._outcome.seed)
        for worker in self._workers:
            worker.wait_until_ready()
        sender.start()
        for kill in draw(self._outcome.seed, kills, WORKERS):
            time.sleep(kill.wait)
            self._do(kill)
            self._outcome.kills[kill.kind] += 1
        sender.stop()
        self._outcome.returned, self._outcome.failed = len(sender.returned), sender.failed
        self._drain(sender.returned)
        done = self._notes.times("done")
        self._outcome.runs = sum(map(len, done.values()))
        self._outcome.duplicates = self._outcome.runs - len(done)

    def _do(self, kill: Kill) -> None:
        worker, kind = self._workers[kill.worker], kill.kind
        if kind == "kill a process of a pool":
            kill_child(worker.process.pid)
            return
        if kind == "stop a worker":
            if worker.process.poll() is None:
                worker.wait_until_ready()  # before, it would end by the signal
                if not _stops(worker):
                    self._outcome.violations.append(f"{worker.host} did not stop in good order")
        elif "worker" in kind:
            worker.kill()
        if kind == "stop the broker" and self._broker.stop() != 0:
            self._outcome.violations.append("the broker did not stop in good order")
        elif "kill" in kind and "broker" in kind:
            self._broker.kill()
        time.sleep(kill.down)
        if "broker" in kind:
            self._broker.start()
        if "worker" in kind:
            self._workers[kill.worker] = self._start(kill.worker)

    def _drain(self, returned: set[str]) -> None:
        begun, size = time.monotonic(), -1
        while True:
            lost = returned - self._notes.times("done").keys()
            if not lost:
                size = self._waiting()
            self._outcome.drained = time.monotonic() - begun
            if not lost and not size:
                return
            if self._outcome.drained > DRAIN:
                self._outcome.violations += [f"task {task} did not run" for task in sorted(lost)]
                if size > 0:
                    self._outcome.violations.append(f"{size} tasks are not acknowledged")
                return
            time.sleep(0.2)

    def _waiting(self) -> int:
        with self._app.connection_for_read() as connection, connection.channel() as channel:
            return channel.queue_declare("celery", passive=True).message_count
