"""The application that the worker processes of these tests run; it notes each run of a task."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from pathlib import Path
from typing import Annotated

from taskiq import Context, SmartRetryMiddleware, TaskiqDepends

from mqlake.taskiq import RocketmqBroker

VISIBILITY = 4.0
"""Seconds; a pause of the machine may take two thirds of them."""

gc.disable()  # the broker has to free what failed tasks leave

broker = RocketmqBroker(
    os.environ["NAME_SERVERS"],
    topic=os.environ["TOPIC"],
    group="tests",
    visibility_timeout=VISIBILITY,
).with_middlewares(SmartRetryMiddleware(default_delay=1))


def write(event: str, task: str) -> int:
    """Add a line; return how many there were of this event and task."""
    notes = Path(os.environ["NOTES"])
    with notes.open("a") as file:
        file.write(f"{event} {task} {time.time()}\n")
    return notes.read_text().count(f"{event} {task} ") - 1


@broker.task(task_name="work")
async def work(name: str, seconds: float) -> None:
    """Run for a while."""
    write("run", name)
    await asyncio.sleep(seconds)
    write("done", name)


@broker.task(task_name="fail_twice", retry_on_error=True, max_retries=5)
async def fail_twice(name: str) -> None:
    """Fail when run for the first and the second time: taskiq sends it again."""
    if write("run", name) < 2:
        raise RuntimeError("not yet")
    write("done", name)


@broker.task(task_name="acknowledge_by_hand", ack_type="manual")
async def acknowledge_by_hand(name: str, context: Annotated[Context, TaskiqDepends()]) -> None:
    """Fail when run for the first time, and be acknowledged by itself later."""
    if write("run", name) < 1:
        raise RuntimeError("not yet")
    await context.ack()
    write("done", name)
