"""taskiq's own workers as processes: killed, stopped, several of them, with tasks that fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlake.testing import RunningBroker
from tests.kombu.workers import ROOT, Notes
from tests.until import PATIENCE, wait_until

MODULE = "tests.taskiq.worker_tasks"
SHORTEST = 0.9
"""Seconds that a message with a delay of one second takes at least."""
VISIBILITY = 4
"""Seconds, as in that module, which only workers can import."""


@pytest.fixture
def notes(
    broker: RunningBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Notes:
    """Return what the workers note; they have a topic for each test."""
    monkeypatch.setenv("NAME_SERVERS", broker.name_server)
    monkeypatch.setenv("TOPIC", request.node.name)
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), *sys.path)))
    return Notes(tmp_path / "notes")


@contextmanager
def worker(log: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a worker; kill it, and the processes that it started, in the end."""
    command = [sys.executable, "-m", "taskiq", "worker", f"{MODULE}:broker", "--workers", "1"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def send(*calls: str) -> None:
    """Send tasks from a program: expressions that use the module `tasks`."""
    lines = [f"    await {call}" for call in calls]
    code = "\n".join(
        (
            f"import asyncio, {MODULE} as tasks",
            "async def main():",
            "    await tasks.broker.startup()",
            *lines,
            "    await tasks.broker.shutdown()",
            "asyncio.run(main())",
        )
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def outlast(notes: Notes, *names: str) -> None:
    """Wait until tasks would have come again since they last began."""
    begun = max(times[-1] for name, times in notes.times("run").items() if name in names)
    time.sleep(max(0.0, begun + VISIBILITY + 1 - time.time()))


def test_a_killed_worker_loses_no_task(notes: Notes, tmp_path: Path) -> None:
    log, names = tmp_path / "log", [f"task-{number}" for number in range(20)]
    with worker(log) as first:
        send("tasks.work.kiq('long', 300.0)", *(f"tasks.work.kiq('{n}', 0.1)" for n in names[:10]))
        wait_until(lambda: {"long", *names[:10]} <= notes.times("run").keys(), why=log.read_text)
        kill(first)
    before = len(notes.times("run")["long"])
    send(*(f"tasks.work.kiq('{name}', 0.1)" for name in names[10:]))
    with worker(log):
        wait_until(lambda: set(names) <= notes.times("done").keys(), why=log.read_text)
        wait_until(lambda: len(notes.times("run")["long"]) > before, why=log.read_text)


def test_a_stopped_worker_ends_its_tasks(notes: Notes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with worker(log) as running:
        send("tasks.work.kiq('short', 1.0)")
        wait_until(lambda: "short" in notes.times("run"), why=log.read_text)
        running.terminate()
        assert running.wait(PATIENCE) == 0, log.read_text()
    assert "short" in notes.times("done")
    with worker(log) as running:
        send("tasks.work.kiq('other', 0.0)")
        wait_until(lambda: "other" in notes.times("done"), why=log.read_text)
        outlast(notes, "short")
    assert len(notes.times("run")["short"]) == 1


def test_tasks_that_fail_run_again(notes: Notes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with worker(log):
        send("tasks.fail_twice.kiq('sent')", "tasks.acknowledge_by_hand.kiq('redelivered')")
        wait_until(lambda: {"sent", "redelivered"} <= notes.times("done").keys(), why=log.read_text)
        outlast(notes, "sent", "redelivered")
    runs = notes.times("run")
    first, second, third = runs["sent"]
    assert second - first > SHORTEST
    assert third - second > SHORTEST
    assert len(runs["redelivered"]) == 2
