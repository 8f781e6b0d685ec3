"""What mqlake uses of taskiq; it need not be installed where types are checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mqlake.errors import MqlakeError

if TYPE_CHECKING:

    class BrokerMessage:
        """`taskiq.BrokerMessage`."""

        task_id: str
        task_name: str
        message: bytes
        labels: dict[str, Any]

    class AckableMessage:
        """`taskiq.AckableMessage`."""

        def __init__(self, *, data: bytes, ack: Callable[[], Awaitable[None]]) -> None: ...

    class AsyncBroker:
        """`taskiq.AsyncBroker`."""

        is_worker_process: bool

        def __init__(self) -> None: ...
        async def startup(self) -> None: ...
        async def shutdown(self) -> None: ...
        async def kick(self, message: BrokerMessage) -> None: ...
        def listen(self) -> AsyncGenerator[AckableMessage, None]: ...

else:
    try:
        from taskiq import AckableMessage, AsyncBroker, BrokerMessage  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "taskiq":
            raise
        raise MqlakeError("taskiq is not installed: pip install 'mqlake[taskiq]'") from None
