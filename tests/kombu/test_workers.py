"""Two workers with process pools: canvas, retries, ETA, revoke, remote control, shutdowns."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from celery import Celery, chain, group
from celery.exceptions import TaskRevokedError

from mqlake.testing import RunningBroker
from tests.kombu.workers import (
    VISIBILITY,
    Notes,
    Worker,
    environment,
    kill_child,
    worker,
)
from tests.until import PATIENCE, wait_until

NAME = "tests.kombu.celery_tasks"


class Running(NamedTuple):
    """Two workers, what they noted, and an application whose results come over the broker."""

    workers: list[Worker]
    notes: Notes
    app: Any

    def task(self, name: str, *arguments: object, **options: Any) -> Any:
        """Return a signature of a task of the workers."""
        return self.app.signature(f"{NAME}.{name}", arguments, **options)


@pytest.fixture(scope="module")
def running(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    directory, url = tmp_path_factory.mktemp("workers"), f"rocketmq://{broker.name_server}/"
    notes = Notes(directory / "notes")
    env = environment(url, notes.path, RESULTS="rpc://")
    with (
        worker("one", directory / "one.log", "-c", "2", env=env) as one,
        worker("two", directory / "two.log", "-c", "2", env=env) as two,
        Celery("client", broker=url, backend="rpc://", set_as_current=False) as app,
    ):
        for each in (one, two):
            each.wait_until_ready()
        yield Running([one, two], notes, app)


def test_chains_and_groups_complete(running: Running) -> None:
    add = lambda *numbers: running.task("add", *numbers)  # noqa: E731
    assert chain(add(1, 2), add(4), add(8), app=running.app)().get(timeout=PATIENCE) == 15
    found = group([add(number, number) for number in range(20)], app=running.app)()
    assert found.get(timeout=PATIENCE) == [2 * number for number in range(20)]


def test_a_failed_task_is_retried(running: Running) -> None:
    result = running.task("fail_twice").delay()
    assert result.get(timeout=PATIENCE) == 2
    assert len(running.notes.times("run")[result.id]) == 3


def test_a_task_with_a_countdown_runs_later(running: Running) -> None:
    begun = time.monotonic()
    assert running.task("add", 1, 1).apply_async(countdown=5).get(timeout=PATIENCE) == 2
    assert time.monotonic() - begun >= 5


def test_a_revoked_task_does_not_run(running: Running) -> None:
    # Long enough for the revocation to be there in time on a busy machine.
    result = running.task("work", 0.0).apply_async(countdown=8)
    running.app.control.revoke(result.id, reply=True, timeout=PATIENCE, limit=2)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=PATIENCE)
    assert result.id not in running.notes.times("run")


def test_a_terminated_task_ends_and_does_not_run_again(running: Running) -> None:
    result, log = running.task("work", 300.0).delay(), running.workers[0].log
    wait_until(lambda: result.id in running.notes.times("run"), why=log.read_text)
    running.app.control.revoke(result.id, terminate=True)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=PATIENCE)
    time.sleep(VISIBILITY + 1)
    assert len(running.notes.times("run")[result.id]) == 1


def test_a_task_whose_process_ends_runs_again(running: Running) -> None:
    result, log = running.task("end_the_process_once").delay(), running.workers[0].log
    wait_until(lambda: result.id in running.notes.times("done"), why=log.read_text)
    assert len(running.notes.times("run")[result.id]) == 2


def test_remote_control_reaches_both_workers(running: Running) -> None:
    control, hosts = running.app.control, {"one@test", "two@test"}
    pongs = control.ping(timeout=PATIENCE, limit=2)
    assert {host for pong in pongs for host in pong} == hosts
    works = [running.task("work", PATIENCE).delay().id for _ in range(2)]
    log = running.workers[0].log
    wait_until(lambda: set(works) <= running.notes.times("run").keys(), why=log.read_text)
    active = control.inspect(timeout=PATIENCE, limit=2).active()
    assert {task["id"] for tasks in active.values() for task in tasks} == set(works)
    control.revoke(works, terminate=True)
    answers = control.add_consumer("extra", reply=True, timeout=PATIENCE, limit=2)
    assert {host for answer in answers for host in answer} == hosts
    assert running.task("add", 2, 3).apply_async(queue="extra").get(timeout=PATIENCE) == 5
    answers = control.cancel_consumer("extra", reply=True, timeout=PATIENCE, limit=2)
    assert {host for answer in answers for host in answer} == hosts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT], ids=["warm", "cold"])
def test_a_shutdown_loses_nothing(
    broker: RunningBroker, tmp_path: Path, number: signal.Signals
) -> None:
    url, notes = f"rocketmq://{broker.name_server}/", Notes(tmp_path / "notes")
    queue, env = f"shutdown-{number}", environment(url, notes.path)
    options = ("-c", "2", "-Q", queue, "--without-mingle", "--without-gossip")
    log = tmp_path / "worker.log"
    with Celery("client", broker=url, set_as_current=False) as app:
        send = lambda: app.send_task(f"{NAME}.work", (0.4,), queue=queue).id  # noqa: E731
        sent = {send() for _ in range(24)}
    with worker("first", log, *options, env=env) as first:
        wait_until(lambda: len(notes.times("run")) >= 2, why=log.read_text)
        assert first.stop(number) == 0, log.read_text()
    done = notes.times("done")
    assert done.keys() < sent
    if number is signal.SIGTERM:
        assert done.keys() == notes.times("run").keys(), "a running task was cut off"
    stopped = time.time()
    with worker("second", log, *options, "-c", "4", env=env):
        wait_until(lambda: notes.times("done").keys() == sent, why=log.read_text)
        time.sleep(max(0.0, stopped + VISIBILITY + 1 - time.time()))
    repeated = sum(len(runs) - 1 for runs in notes.times("done").values())
    # What has just run when its pool of two is cut off is not acknowledged.
    assert repeated <= (0 if number is signal.SIGTERM else 2)


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_tasks_run_in_other_pools(broker: RunningBroker, tmp_path: Path, pool: str) -> None:
    url, notes, log = f"rocketmq://{broker.name_server}/", Notes(tmp_path / "n"), tmp_path / "log"
    options = ("-P", pool, "-c", "3", "-Q", pool, "--without-mingle", "--without-gossip")
    with Celery("client", broker=url, set_as_current=False) as app:
        sent = {app.send_task(f"{NAME}.work", (0.01,), queue=pool).id for _ in range(30)}
    with worker(pool, log, *options, env=environment(url, notes.path)) as running:
        wait_until(lambda: notes.times("ack").keys() == sent, why=log.read_text)
        assert running.stop() == 0, log.read_text()
    assert all(len(runs) == 1 for runs in notes.times("run").values())


def test_a_worker_outlasts_the_processes_of_its_pool(broker: RunningBroker, tmp_path: Path) -> None:
    url, notes = f"rocketmq://{broker.name_server}/", Notes(tmp_path / "notes")
    options = ("-c", "2", "-Q", "outlasting-pool", "--without-mingle", "--without-gossip")
    log = tmp_path / "worker.log"
    with worker("first", log, *options, env=environment(url, notes.path)) as first:
        first.wait_until_ready()
        for _ in range(3):  # idle ones, too
            kill_child(first.process.pid)
            time.sleep(0.5)
        with Celery("client", broker=url, set_as_current=False) as app:
            sent = {
                app.send_task(f"{NAME}.work", (0.0,), queue="outlasting-pool").id for _ in range(10)
            }
        wait_until(lambda: notes.times("done").keys() == sent, why=log.read_text)
        assert first.stop() == 0, log.read_text()
