"""The position of a streaming query, as Spark writes it into its checkpoint.

    {"topicA": {"0": 23, "1": 345}, "#topicIds": {"topicA": "4KRDEyi7T2mAUeIiUSxdHg"}}

The offsets are written in the format of Spark's Kafka source. A topic that was deleted and created
again has another id (`partition.metadata`; Kafka 2.8 and later), so that its log is not confused
with the one that was read. No topic name contains `#`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mqlake.errors import StoreError
from mqlake.query.kafka_log.options import TopicPartition

Offsets = dict[TopicPartition, int]
"""The next offset of each partition."""

TopicIds = dict[str, str]
"""The id of each topic that has one."""

_TOPIC_IDS = "#topicIds"


class KafkaLogPosition(msgspec.Struct, frozen=True):
    """The offsets of a query, and the ids of their topics."""

    offsets: Offsets
    topic_ids: TopicIds = {}

    @classmethod
    def read(cls, written: dict[str, Any]) -> KafkaLogPosition:
        """Return the position of a checkpoint.

        Raises:
            StoreError: the checkpoint is not one of this source.
        """
        others = {name: value for name, value in written.items() if name != _TOPIC_IDS}
        try:
            ids = msgspec.convert(written.get(_TOPIC_IDS, {}), TopicIds)
            found = msgspec.convert(others, dict[str, dict[int, int]], strict=False)
        except msgspec.ValidationError as error:
            raise StoreError(f"the checkpoint is not one of this source: {error}") from None
        offsets = {(topic, n): offset for topic, of in found.items() for n, offset in of.items()}
        return cls(offsets, ids)

    def write(self) -> dict[str, Any]:
        """Return the content of Spark's checkpoint."""
        written: dict[str, dict[str, Any]] = {}
        for (topic, number), offset in sorted(self.offsets.items()):
            written.setdefault(topic, {})[str(number)] = offset
        ids = {topic: self.topic_ids[topic] for topic in written if topic in self.topic_ids}
        return {**written, _TOPIC_IDS: ids} if ids else written
