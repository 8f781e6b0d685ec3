"""mqlake over Kafka's logs as a process that is measured: `python -m benchmarks.kafka_peer`.

Answers the same requests as the JVM of `tests/peer/kafka/`, with the same words.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlake.errors import MqlakeError
from mqlake.kafka import warm_up
from mqlake.kafka.log.partition_path import find_partitions
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.verify.partitions import verify_partitions
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.storage.local_owned import LocalOwnedDirectory

Answer = dict[str, Any]


def recover(directory: str, interval: str) -> Answer:
    """Recover the one segment of a directory, which begins at offset 0."""
    segment = OwnedSegment(
        LocalOwnedDirectory(Path(directory)), "", 0, LogSettings(index_interval_bytes=int(interval))
    )
    begin = time.perf_counter()
    cut = segment.recover(ProducerState(), LeaderEpochs())
    seconds = time.perf_counter() - begin
    entries = segment.offset_index.entries
    segment.close()
    return {"seconds": seconds, "cut": cut, "entries": entries}


def verify(directory: str) -> Answer:
    """Check a partition, as the command does."""
    begin = time.perf_counter()
    report = verify_partitions(directory, find_partitions(Path(directory)).partitions)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "records": report.records, "ok": report.ok}


REQUESTS: dict[str, Callable[..., Answer]] = {"recover": recover, "verify": verify}


def main() -> None:
    """Answer until the input ends, with kernels that are loaded."""
    warm_up.load()
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        try:
            answer = REQUESTS[name](*words)
        except MqlakeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
