"""Kafka's log files: bytes to values and back, one module a format (docs/formats/kafka/).

Modules are imported whole, such as `record_batch`, which encodes a `NewRecord`. The values are
found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.formats.kafka.batch import Batch as Batch
    from mqlake.formats.kafka.batch import Record as Record
    from mqlake.formats.kafka.batch import TimestampType as TimestampType
    from mqlake.formats.kafka.compression import Compression as Compression
    from mqlake.formats.kafka.file_name import PartitionName as PartitionName
    from mqlake.formats.kafka.record_batch import NewRecord as NewRecord
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Batch": "batch",
            "Record": "batch",
            "TimestampType": "batch",
            "Compression": "compression",
            "PartitionName": "file_name",
            "NewRecord": "record_batch",
        },
    )
