"""Celery on mqlake's broker and on Redis: tasks that are sent, and tasks that a worker runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, interleave, seconds
from benchmarks.broker.sides import MqlakeBroker
from benchmarks.memory_state import stored
from benchmarks.results import Bar, Section, Series
from mqlake.programs.ports import free_port

ROOT = Path(__file__).parents[1]
TASKS = 5_000
TASK = 1024
"""Bytes of a task, at most, as Celery sends it."""
WARM_UP = 200
"""Tasks before those that count, as benchmarks/celery_app.py sends them."""
PATIENCE = 120.0
APPLICATION = "benchmarks.celery_app"
OPTIONS = ("--without-gossip", "--without-mingle", "--without-heartbeat")
POOLS = {"a pool of 2 processes": ("-c", "2"), "one process": ("-P", "solo")}
MQLAKE = "mqlake"
REDIS = {"Redis": (), "Redis with appendonly": ("--appendonly", "yes")}
BROKERS = {MQLAKE: None, **REDIS}
SENDING = "sending"

METHOD = """\
Celery {celery} sends {tasks} tasks, one `delay()` after another, from one process. Then a new
worker runs them: once with its default pool of two processes, and once in one process. A task only
appends a byte to a file. Early acknowledgements, Celery's default prefetch count, no results, no
events. Redis {redis} runs with its defaults (in memory, with snapshots), and with `appendonly yes`
(`appendfsync everysec`). `mqlake broker` runs with `ASYNC_FLUSH`: unlike Redis without
`appendonly`, it loses nothing when its process is killed. All share the machine's cores. The start
of programs and the first tasks are not timed. The first round is dropped."""


def missing() -> str | None:
    """Return what these benchmarks need and this machine lacks."""
    packages = [name for name in ("celery", "redis") if find_spec(name) is None]
    if packages:
        return f"pip install {' '.join(packages)}"
    return None if shutil.which("redis-server") else "redis-server is not on the PATH"


def measure(bench: Bench) -> Section:
    """Measure sends and workers on all brokers in turns."""
    found: dict[str, dict[str, list[float]]] = {SENDING: {}}
    with ExitStack() as stack:
        loads: dict[str, Load] = {}
        for number, (name, options) in enumerate(BROKERS.items()):
            directory = bench.directory / f"celery-{number}"
            broker = _mqlake(directory) if options is None else _redis(directory, *options)
            loads[name] = Load(stack.enter_context(broker), directory)
        for pool, options in POOLS.items():
            runs = {name: partial(load.run, options) for name, load in loads.items()}
            writes = stored(WARM_UP + TASKS, TASK)
            answers = interleave(runs, dropped=1, repetitions=bench.repetitions, writes=writes)
            found[f"a worker, {pool}"] = {name: seconds(told) for name, told in answers.items()}
            for name, told in answers.items():
                found[SENDING].setdefault(name, []).extend(one["sending"] for one in told)
    series: list[Series] = []
    bars: list[Bar] = []
    for what, by_name in found.items():
        work = {"tasks": TASKS}
        some = {name: Series(f"{what}: {name}", "s", by_name[name], work) for name in by_name}
        series += some.values()
        for name in REDIS:
            ratio = some[name].median / some[MQLAKE].median
            text = f"Celery, {what}: tasks a second, against {name}'s"
            bars.append(Bar(text, "≥", 1, ratio, "x"))
    method = METHOD.format(celery=version("celery"), tasks=f"{TASKS:,}", redis=_redis_version())
    return Section("celery", "Celery on mqlake's broker and on Redis", method, series, bars)


class Load:
    """A program that sends tasks to one broker, and workers that run them."""

    def __init__(self, url: str, directory: Path) -> None:
        self._done, self._log = directory / "done", directory / "celery.log"
        path = os.pathsep.join((str(ROOT), *sys.path))
        self._environment = {
            **os.environ,
            "BROKER_URL": url,
            "DONE": str(self._done),
            "PYTHONPATH": path,
        }

    def run(self, options: Sequence[str]) -> dict[str, Any]:
        """Send tasks; run them in a worker. Return the seconds of both."""
        self._done.write_bytes(b"")
        command = [sys.executable, "-m", APPLICATION, str(TASKS)]
        told = subprocess.run(
            command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, check=True
        )
        return {"sending": json.loads(told.stdout)["seconds"], "seconds": self._work(options)}

    def _work(self, options: Sequence[str]) -> float:
        command = [sys.executable, "-m", "celery", "-A", APPLICATION, "worker", *OPTIONS, *options]
        with self._log.open("wb") as log:
            worker = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=log, stderr=log
            )
        try:
            begin = self._wait(WARM_UP)
            return self._wait(WARM_UP + TASKS) - begin
        finally:
            worker.terminate()
            worker.wait(PATIENCE)

    def _wait(self, count: int) -> float:
        """Return the time at which so many tasks have run."""
        deadline = time.perf_counter() + PATIENCE
        while self._done.stat().st_size < count:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"the tasks do not run: {self._log.read_text()}")
            time.sleep(0.002)
        return time.perf_counter()


@contextmanager
def _mqlake(directory: Path) -> Generator[str]:
    broker = MqlakeBroker(directory)
    try:
        yield f"rocketmq://{broker.names}/"
    finally:
        broker.stop()


@contextmanager
def _redis(directory: Path, *options: str) -> Generator[str]:
    directory.mkdir()
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), *options]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _wait_for(port: int) -> None:
    deadline = time.perf_counter() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _redis_version() -> str:
    told = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v=([\d.]+)", told.stdout)
    return found[1] if found else "of unknown version"
