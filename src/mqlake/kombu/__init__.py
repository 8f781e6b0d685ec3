"""A kombu transport, so that Celery runs on RocketMQ 5 and on mqlake's broker (docs/celery.md).

    import mqlake.kombu  # registers the schemes rocketmq:// and rocketmqs:// (TLS)
    from celery import Celery

    app = Celery("tasks", broker="rocketmq://localhost:9876")

Importing this package needs Celery or kombu: `pip install 'mqlake[celery]'`.
"""

from __future__ import annotations

from mqlake.kombu.border import register

register("rocketmq", "mqlake.kombu.transport:Transport")
register("rocketmqs", "mqlake.kombu.transport:TlsTransport")
