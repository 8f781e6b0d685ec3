"""One RocketMQ store directory: opened for reading, or owned and written.

Names are found when they are first used: reading needs no compiled kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.store.append.message import Message, MessageBatch
    from mqlake.store.append.put_result import PutError, PutResult, PutStatus
    from mqlake.store.blocking import BlockingMessageStore
    from mqlake.store.message_store import MessageStore
    from mqlake.store.reader import StoreReader
    from mqlake.store.settings import StoreSettings

__all__ = [
    "BlockingMessageStore",
    "Message",
    "MessageBatch",
    "MessageStore",
    "PutError",
    "PutResult",
    "PutStatus",
    "StoreReader",
    "StoreSettings",
]

_MODULES = {
    "BlockingMessageStore": "blocking",
    "Message": "append.message",
    "MessageBatch": "append.message",
    "MessageStore": "message_store",
    "PutError": "append.put_result",
    "PutResult": "append.put_result",
    "PutStatus": "append.put_result",
    "StoreReader": "reader",
    "StoreSettings": "settings",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
