"""A store with compressed bodies and inner batches."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.properties import encode_properties
from mqlake.protocol.messages.body_compression import compress
from tests.store.make_store import StoreMaker

BATCH = 5
"""Messages of an inner batch."""


class MixedStore:
    """A store of plain and compressed messages, and of inner batches, in one queue of a topic.

    Attributes:
        sent: what a consumer should receive, by queue offset.
    """

    def __init__(self, path: Path, seed: int, count: int = 60) -> None:
        self.path, self.sent = path, list[dict[str, Any]]()
        self._dice = random.Random(seed)
        self._maker = StoreMaker(segment_size=8192)
        for _ in range(count):
            self._append()
        for name, data in self._maker.files().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        (path / "batchconsumequeue/T/0").mkdir(parents=True)

    def _append(self) -> None:
        kind = self._dice.choice(("plain", "compressed", "batch", "compressed batch"))
        first = len(self.sent)
        new = [self._message(first + number) for number in range(BATCH if "batch" in kind else 1)]
        body, flag = new[0]["body"], 0
        properties = {name: new[0][name] for name in ("KEYS", "TAGS")}
        if "batch" in kind:
            flag, properties = FLAGS, {"INNER_BASE": str(first), "INNER_NUM": str(BATCH)}
            body = encode_batch(
                (
                    one["flag"],
                    one["body"],
                    encode_properties({name: one[name] for name in ("KEYS", "TAGS")}),
                )
                for one in new
            )
        if "compressed" in kind:
            body, bits = compress(body, self._dice.choice(("zlib", "lz4", "zstd")), 3)
            flag |= bits
        self._maker.sys_flag = flag
        put = self._maker.append(queue_offset=first, body=body, **properties)
        for one in new:
            self.sent.append({**one, "physicalOffset": put.physical_offset, "size": put.size})

    def _message(self, number: int) -> dict[str, Any]:
        return {
            "queueOffset": number,
            "body": b"message %d " % number * self._dice.randrange(1, 20),
            "KEYS": f"key-{number}",
            "TAGS": f"tag-{number % 3}",
            "flag": 0,
        }
