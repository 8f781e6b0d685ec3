"""The parts of taskiq that mqlake uses."""

from __future__ import annotations

from mqlake.errors import MqlakeError

try:
    from taskiq import (
        AckableMessage,
        AsyncBroker,
        BrokerMessage,
        TaskiqMessage,
        TaskiqMiddleware,
        TaskiqResult,
    )
except ModuleNotFoundError as error:
    if error.name != "taskiq":
        raise
    raise MqlakeError("taskiq is not installed: pip install 'mqlake[taskiq]'") from None

__all__ = [
    "AckableMessage",
    "AsyncBroker",
    "BrokerMessage",
    "TaskiqMessage",
    "TaskiqMiddleware",
    "TaskiqResult",
]
