"""A Celery application on RocketMQ, or on `mqlake broker`.

    celery -A celery_app worker     # in one terminal
    python celery_app.py            # in another one

The environment variable BROKER_URL names another cluster than the one of this machine.
"""

from __future__ import annotations

import os

from celery import Celery

import mqlake.kombu  # noqa: F401 (registers rocketmq:// URLs)

app = Celery("shop", broker=os.environ.get("BROKER_URL", "rocketmq://127.0.0.1:9876/"))
app.conf.update(
    task_acks_late=True,  # A task whose worker died runs again.
    broker_transport_options={"visibility_timeout": 60},
)


@app.task(name="bill")
def bill(order: int) -> None:
    """Write an invoice."""
    print(f"billed order {order}")


if __name__ == "__main__":
    for number in range(3):
        bill.delay(number)
    bill.apply_async((3,), countdown=2)
    print("sent 4 tasks")
