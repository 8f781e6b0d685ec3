"""A taskiq broker, so that taskiq runs on RocketMQ 5 and on mqlake's broker (docs/taskiq.md).

    from mqlake.taskiq import RocketmqBroker

    broker = RocketmqBroker("localhost:9876")

Importing this package needs taskiq: `pip install 'mqlake[taskiq]'`.
"""

from __future__ import annotations

from mqlake.taskiq.broker import RocketmqBroker as RocketmqBroker
