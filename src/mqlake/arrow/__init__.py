"""Consumers that hand messages over as Arrow columns (docs/client.md, "Arrow batches").

    async with ArrowConsumer("localhost:9876", "reports", "orders") as consumer:
        async for batch in consumer.arrow_batches():
            ...  # batch.records is a pyarrow.RecordBatch
            await batch.ack()

Needs pyarrow, NumPy and Numba: `pip install 'mqlake[parquet]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.arrow.batch import ArrowBatch as ArrowBatch
    from mqlake.arrow.consumer import SETTINGS as SETTINGS
    from mqlake.arrow.consumer import ArrowConsumer as ArrowConsumer
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__, {"ArrowBatch": "batch", "ArrowConsumer": "consumer", "SETTINGS": "consumer"}
    )
