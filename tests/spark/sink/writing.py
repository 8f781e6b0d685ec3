"""Write rows with the sink as Spark does, without a Spark around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mqlake.spark.sink.commit import SinkEpoch, commit
from mqlake.spark.sink.options import write_options
from mqlake.spark.sink.stage import stage
from mqlake.spark.sink.staged import StagedFile
from mqlake.spark.sink.target import largest_record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message

SMALL = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "messageDelayLevel": "1h 2h 1d 2d",
}
"""Options for stores of several files each."""

TYPES = pa.schema(
    [
        ("topic", pa.string()),
        ("body", pa.binary()),
        ("tags", pa.string()),
        ("keys", pa.list_(pa.string())),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("queueId", pa.int32()),
        ("flag", pa.int32()),
        ("sysFlag", pa.int32()),
        ("bornTimestamp", pa.timestamp("us", tz="UTC")),
        ("bornHost", pa.string()),
        ("reconsumeTimes", pa.int32()),
        ("preparedTransactionOffset", pa.int64()),
        ("delayLevel", pa.int32()),
    ]
)


def to_batch(messages: Iterable[Message]) -> Any:
    """Return messages as a batch of rows; what is not set is null."""
    return pa.RecordBatch.from_pylist([_row(message) for message in messages], schema=TYPES)


def _row(message: Message) -> dict[str, Any]:
    keys = message.keys.split() if isinstance(message.keys, str) else list(message.keys)
    return {
        "topic": message.topic,
        "body": message.body,
        "tags": message.tags,
        "keys": keys or None,
        "properties": dict(message.properties) if message.properties else None,
        "queueId": message.queue_id,
        "flag": message.flag or None,
        "sysFlag": message.sys_flag or None,
        "bornTimestamp": message.born_timestamp * 1000 or None,
        "bornHost": message.born_host or None,
        "reconsumeTimes": message.reconsume_times or None,
        "preparedTransactionOffset": message.prepared_transaction_offset or None,
        "delayLevel": message.delay_level or None,
    }


def stage_tasks(
    path: Path, staging: Path, tasks: Sequence[Any], **options: Any
) -> list[StagedFile]:
    """Stage one batch for each task."""
    given = write_options({"path": str(path), **{k: str(v) for k, v in options.items()}})
    staging.mkdir(parents=True, exist_ok=True)
    largest = largest_record(path, given.settings)
    return [stage([batch], staging, given, largest, n) for n, batch in enumerate(tasks)]


def write(path: Path, tasks: Sequence[Any], epoch: SinkEpoch | None = None, **options: Any) -> int:
    """Write one batch of rows for each task; return how many rows were added."""
    staging = path.parent / f"{path.name}-staging"
    parts = stage_tasks(path, staging, tasks, **options)
    given = write_options({"path": str(path), **{k: str(v) for k, v in options.items()}})
    return commit(LocalOwnedDirectory.make(path), given.settings, staging, parts, epoch)
