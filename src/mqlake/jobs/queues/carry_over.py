"""Keep queues without records in the log when a store is rebuilt in place.

If all messages of a queue have expired, its files still contain the next queue offset: without
them, RocketMQ would start it at 0 again, below the offsets that its consumers have committed. And
light message queues are dispatched by a property of another topic's records.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.jobs.queues.runs import QueueName
from mqlake.jobs.source import StoreSource
from mqlake.store.queues.queue_files import QueueFiles, queue_ids, topic_names


def carry_over(source: StoreSource, new: Path, rebuilt: Collection[QueueName]) -> int:
    """Link the files of such queues into `new`, which is on the same disk; return the number of
    queues.
    """
    carried = 0
    for topic in topic_names(source.directory):
        for queue_id in queue_ids(source.directory, topic):
            queue = QueueName(topic, queue_id)
            files = QueueFiles(source.directory, topic, queue_id)
            if queue not in rebuilt and files.files and _is_kept(source, topic, files):
                carried += 1
                (new / queue.path).mkdir(parents=True, exist_ok=True)
                for file in files.files:
                    path = f"{queue.path}/{file.name}"
                    link(source.directory.root / path, new / path)
    return carried


def _is_kept(source: StoreSource, topic: str, files: QueueFiles) -> bool:
    if topic.startswith(LIGHT_PREFIX):
        return True
    last = files.entry(files.end - 1)
    return last is None or last.physical_offset < source.log.min_offset


def link(file: Path, to: Path) -> None:
    """Link a file into a directory of the same disk; copy it if the file system has no links."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)
