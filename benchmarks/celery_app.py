"""The Celery application that is measured; `python -m benchmarks.celery_app TASKS` sends to it.

Environment: BROKER_URL, and DONE, a file to which each task adds one byte when it runs.
"""

from __future__ import annotations

import json
import os
import sys
import time

from celery import Celery

import mqlake.kombu  # noqa: F401 (registers rocketmq:// URLs)

WARM_UP = 200
"""Tasks that are sent before those that count."""

app = Celery("bench", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True)
_done = os.open(os.environ["DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@app.task(name="note")
def note(number: int, text: str) -> None:  # noqa: ARG001 (a task has some arguments)
    """Do nothing but note that it ran."""
    os.write(_done, b".")


def main() -> None:
    """Send tasks, one after the other; print how long it took."""
    count = int(sys.argv[1])
    for number in range(WARM_UP):
        note.delay(number, "warm-up")
    begin = time.perf_counter()
    for number in range(count):
        note.delay(number, "a customer's name")
    print(json.dumps({"seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
