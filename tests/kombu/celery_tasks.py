"""The application that the worker processes of these tests run.

It notes in `NOTES` each start and end of a task, and each acknowledgement after the broker
confirmed it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery
from celery.signals import worker_init

import mqlake.kombu  # noqa: F401 (registers the scheme)
from mqlake.kombu.channel import Channel
from tests.kombu.workers import VISIBILITY

NOTES = Path(os.environ["NOTES"])

app = Celery("tasks", broker=os.environ["BROKER_URL"], backend=os.environ.get("RESULTS"))
app.conf.update(
    broker_transport_options={"visibility_timeout": VISIBILITY},
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    result_expires=60,
)


def write(event: str, task: str) -> None:
    """Add a line; lines of several processes do not mix."""
    with NOTES.open("a") as file:
        file.write(f"{event} {task} {time.time()}\n")


@app.task(bind=True, reject_on_worker_lost=True)
def work(self, seconds: float) -> None:
    """Run for a while."""
    write("run", self.request.id)
    time.sleep(seconds)
    write("done", self.request.id)


@app.task(bind=True, reject_on_worker_lost=True)
def wait_for(self, path: str) -> None:
    """Run until a file exists."""
    write("run", self.request.id)
    while not Path(path).exists():
        time.sleep(0.05)
    write("done", self.request.id)


@app.task(bind=True, acks_late=False)
def work_acknowledged_early(self, seconds: float) -> None:
    """Run for a while, and be acknowledged before."""
    write("run", self.request.id)
    time.sleep(seconds)


@app.task
def add(left: int, right: int) -> int:
    """Return a sum."""
    return left + right


@app.task(bind=True, max_retries=3)
def fail_twice(self) -> int:
    """Return how many times it was retried: twice."""
    write("run", self.request.id)
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task(bind=True, reject_on_worker_lost=True)
def end_the_process_once(self) -> None:
    """Have the first process of the pool that runs it end."""
    write("run", self.request.id)
    if not self.request.delivery_info["redelivered"]:
        os._exit(1)
    write("done", self.request.id)


class NotingChannel(Channel):
    """Notes acknowledgements."""

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        delivery = self._delivered.get(delivery_tag)
        super().basic_ack(delivery_tag, multiple)
        if delivery is not None and delivery.message.keys:
            write("ack", delivery.message.keys[0])


@worker_init.connect
def note_acknowledgements(**_: object) -> None:
    """Use the channel above in this process."""
    from mqlake.kombu.transport import Transport

    Transport.Channel = NotingChannel
