"""Celery workers as processes: tasks, a worker that is killed, remote control, events."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from celery import Celery

from mqlake.testing import RunningBroker
from tests.kombu.workers import ROOT, VISIBILITY, Notes, worker
from tests.until import PATIENCE, wait_until

TASKS = 36
OPTIONS = ("-c", "3", "-E", "--without-mingle")


@pytest.fixture
def tasks(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[ModuleType]:
    """Give the application that the workers run."""
    monkeypatch.setenv("BROKER_URL", f"rocketmq://{broker.name_server}/")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), *sys.path)))
    monkeypatch.delitem(sys.modules, "tests.kombu.celery_tasks", raising=False)
    module = importlib.import_module("tests.kombu.celery_tasks")
    yield module
    module.app.close()


@contextmanager
def client(url: str, **options: Any) -> Generator[Any]:
    """Give an application that sends to the same tasks with other transport options."""
    with Celery(
        "client", broker=url, broker_transport_options=options, set_as_current=False
    ) as app:
        yield app


def test_a_killed_worker_loses_no_task(tasks: ModuleType, tmp_path: Path) -> None:
    notes, url = Notes(Path(os.environ["NOTES"])), os.environ["BROKER_URL"]
    early = tasks.work_acknowledged_early.delay(300.0).id
    with worker("first", tmp_path / "first.log", *OPTIONS) as first:
        wait_until(lambda: early in notes.times("run"), why=(tmp_path / "first.log").read_text)
        wait_until(lambda: early in notes.times("ack"), why=(tmp_path / "first.log").read_text)
        sent = {tasks.work.delay(0.05).id for _ in range(TASKS)}
        wait_until(
            lambda: len(notes.times("ack")) > TASKS // 3, why=(tmp_path / "first.log").read_text
        )
        # These do not end before the kill, however late that is.
        held = {tasks.wait_for.delay(str(tmp_path / "killed")).id for _ in range(TASKS // 3)}
        wait_until(lambda: held & notes.times("run").keys(), why=(tmp_path / "first.log").read_text)
        sent |= held
        first.kill()
    (tmp_path / "killed").touch()
    acknowledged = notes.times("ack")
    assert sent & acknowledged.keys()
    assert not held & acknowledged.keys()

    log = tmp_path / "second.log"
    started = time.time()
    with worker("second", log, *OPTIONS) as second:
        # The worker waits for one of these, for longer than its visibility timeout; the broker for
        # the other one.
        name, countdown = tasks.work.name, 2.0 * VISIBILITY
        with client(url, broker_eta=False) as impatient, client(url) as patient:
            waits = impatient.send_task(name, (0.0,), countdown=countdown).id
            kept = patient.send_task(name, (0.0,), countdown=countdown).id
        # The kill may have come between an acknowledgement and its note: such a task does not run
        # again, and is done.
        wait_until(lambda: sent <= notes.times("done").keys(), why=log.read_text)
        with client(url) as app:
            check_remote_control(app)
        wait_until(lambda: {waits, kept} <= notes.times("ack").keys(), why=log.read_text)
        with client(url) as app:
            app.control.shutdown()
        assert second.process.wait(PATIENCE) == 0, log.read_text()
    runs, acknowledgements = notes.times("run"), notes.times("ack")
    assert runs.keys() == sent | {early, waits, kept}
    for task in (sent | {waits, kept}) & acknowledgements.keys():
        acks = acknowledgements[task]
        assert max(runs[task]) <= min(acks), f"{task} ran again after its acknowledgement"
    for task in (waits, kept):
        assert len(runs[task]) == 1
        assert countdown <= runs[task][0] - started < countdown + PATIENCE
    assert len(runs[early]) == 1


def check_remote_control(app: Any) -> None:
    assert app.control.ping(timeout=PATIENCE, limit=1) == [{"second@test": {"ok": "pong"}}]
    inspect = app.control.inspect(destination=["second@test"], timeout=PATIENCE)
    assert [queue["name"] for queue in inspect.active_queues()["second@test"]] == ["celery"]
    events: list[dict[str, Any]] = []
    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"worker-heartbeat": events.append})
        # Workers answer with an event to a receiver that starts.
        receiver.capture(limit=1, timeout=PATIENCE, wakeup=True)
    assert events[0]["hostname"] == "second@test"
