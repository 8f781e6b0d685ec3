"""A broker of Kafka with its clients, and its logs as we read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mqlake.formats.kafka.record_json import to_json
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.verify.partition import verify_partition
from mqlake.spark.launch import QUICK_START
from mqlake.storage.local import LocalDirectory
from tests.peer.kafka_broker import Broker, start_clients

SETTINGS = "internal.segment.bytes=65536,index.interval.bytes=1024"

Rows = list[dict[str, Any]]


class Kafka:
    """The broker, and clients for it."""

    def __init__(self, directory: Path, version: str | None = None) -> None:
        self._clients = start_clients(directory / "clients.stderr", version, QUICK_START)
        self._answers = directory
        self.broker = Broker(directory, version, QUICK_START)

    @property
    def logs(self) -> Path:
        return self.broker.logs

    def create(self, topic: str) -> None:
        self._clients.ask("create", self.broker.bootstrap, topic, SETTINGS)

    def produce(self, topic: str, count: int, codec: str) -> None:
        self._clients.ask("produce", self.broker.bootstrap, topic, count, codec)

    def consume(self, topic: str, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> Rows:
        file = self._answers / "records.jsonl"
        self._clients.ask("consume", self.broker.bootstrap, topic, isolation, file)
        return [json.loads(line) for line in file.read_text().split("\n") if line]

    def close(self) -> None:
        self.broker.kill()
        self._clients.close()


def read(logs: Path, topic: str, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> Rows:
    with LogDirectory(LocalDirectory(logs)).partition(topic, 0) as partition:
        assert verify_partition(partition, deep=True).damage == []
        return [to_json(record) for record in partition.records(isolation=isolation)]
