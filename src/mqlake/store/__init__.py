"""One RocketMQ store directory: opened for reading, or owned and written.

`StoreReader` reads (docs/store-reader.md). `MessageStore` on asyncio and `BlockingMessageStore` on
threads own the directory (docs/live-store.md); both put a `Message` and return a `PutResult`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.store.append.message import Message as Message
    from mqlake.store.append.message import MessageBatch as MessageBatch
    from mqlake.store.append.put_result import PutError as PutError
    from mqlake.store.append.put_result import PutResult as PutResult
    from mqlake.store.append.put_result import PutStatus as PutStatus
    from mqlake.store.blocking import BlockingMessageStore as BlockingMessageStore
    from mqlake.store.delivery.transactions import Ended as Ended
    from mqlake.store.delivery.transactions import EndStatus as EndStatus
    from mqlake.store.message_store import MessageStore as MessageStore
    from mqlake.store.reader import StoreReader as StoreReader
    from mqlake.store.report import StoreReport as StoreReport
    from mqlake.store.results import GetResult as GetResult
    from mqlake.store.results import QueryResult as QueryResult
    from mqlake.store.results import Status as Status
    from mqlake.store.settings import StoreSettings as StoreSettings
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Message": "append.message",
            "MessageBatch": "append.message",
            "PutError": "append.put_result",
            "PutResult": "append.put_result",
            "PutStatus": "append.put_result",
            "BlockingMessageStore": "blocking",
            "Ended": "delivery.transactions",
            "EndStatus": "delivery.transactions",
            "MessageStore": "message_store",
            "StoreReader": "reader",
            "StoreReport": "report",
            "GetResult": "results",
            "QueryResult": "results",
            "Status": "results",
            "StoreSettings": "settings",
        },
    )
