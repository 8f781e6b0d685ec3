"""Kafka's log directories: segments of batches with their indexes, read or owned (docs/kafka.md).

`LogDirectory` and `Partition` read; `OwnedLogDirectory` and `OwnedPartition` write. `inspect`,
`by_offset`, `by_time`, `verify_partitions`, `rebuild_index` and `recover` are the commands of
`mqlake kafka`; they take what `find_partitions` finds at a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.kafka.errors import CorruptIndexError as CorruptIndexError
    from mqlake.kafka.errors import FullIndexError as FullIndexError
    from mqlake.kafka.errors import InvalidOffsetError as InvalidOffsetError
    from mqlake.kafka.errors import OffsetOverflowError as OffsetOverflowError
    from mqlake.kafka.errors import TransactionStateError as TransactionStateError
    from mqlake.kafka.isolation import Isolation as Isolation
    from mqlake.kafka.log.log_directory import LogDirectory as LogDirectory
    from mqlake.kafka.log.partition import Partition as Partition
    from mqlake.kafka.log.partition_path import PartitionPath as PartitionPath
    from mqlake.kafka.log.partition_path import PartitionPaths as PartitionPaths
    from mqlake.kafka.log.partition_path import find_partitions as find_partitions
    from mqlake.kafka.lookup import by_offset as by_offset
    from mqlake.kafka.lookup import by_time as by_time
    from mqlake.kafka.records.arrow import to_arrow as to_arrow
    from mqlake.kafka.records.scan import RecordScan as RecordScan
    from mqlake.kafka.repair.rebuild_index import rebuild_index as rebuild_index
    from mqlake.kafka.repair.recover import recover as recover
    from mqlake.kafka.settings import LogSettings as LogSettings
    from mqlake.kafka.summary import inspect as inspect
    from mqlake.kafka.verify.partition import verify_partition as verify_partition
    from mqlake.kafka.verify.partitions import verify_partitions as verify_partitions
    from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory as OwnedLogDirectory
    from mqlake.kafka.write.owned_partition import OwnedPartition as OwnedPartition
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "CorruptIndexError": "errors",
            "FullIndexError": "errors",
            "InvalidOffsetError": "errors",
            "OffsetOverflowError": "errors",
            "TransactionStateError": "errors",
            "Isolation": "isolation",
            "LogDirectory": "log.log_directory",
            "Partition": "log.partition",
            "PartitionPath": "log.partition_path",
            "PartitionPaths": "log.partition_path",
            "find_partitions": "log.partition_path",
            "by_offset": "lookup",
            "by_time": "lookup",
            "to_arrow": "records.arrow",
            "RecordScan": "records.scan",
            "rebuild_index": "repair.rebuild_index",
            "recover": "repair.recover",
            "LogSettings": "settings",
            "inspect": "summary",
            "verify_partition": "verify.partition",
            "verify_partitions": "verify.partitions",
            "OwnedLogDirectory": "write.owned_log_directory",
            "OwnedPartition": "write.owned_partition",
        },
    )
