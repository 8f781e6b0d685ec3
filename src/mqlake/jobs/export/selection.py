"""Select records of a batch by topic, tag, key and store time, before anything is copied."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from mqlake.dispatch.batch import Batch
from mqlake.formats.properties import KEY_SEPARATOR

Mask = NDArray[np.bool_]


class Selection(msgspec.Struct, frozen=True):
    """The conditions on records; None or an empty value does not restrict.

    Attributes:
        topics: any of these.
        tags: any of these, exactly.
        key: one of the message's KEYS, or its unique key.
        begin, end: store time in milliseconds, both inclusive.
    """

    topics: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    key: str | None = None
    begin: int | None = None
    end: int | None = None

    def choose(self, batch: Batch) -> Mask:
        """Return bool[n]: which of the batch's records are selected."""
        times = batch.records["store_timestamp"]
        chosen = np.ones(len(times), np.bool_)
        if self.begin is not None:
            chosen &= times >= self.begin
        if self.end is not None:
            chosen &= times <= self.end
        if self.topics:
            chosen &= _is_any(batch, "topic", self.topics)
        if self.tags:
            chosen &= _is_any(batch, "tags", self.tags)
        if self.key is not None:
            chosen &= _is_any(batch, "unique_key", (self.key,)) | _has_key(batch, self.key)
        return chosen


def _is_any(batch: Batch, column: str, texts: tuple[str, ...]) -> Mask:
    found = np.zeros(len(batch.records), np.bool_)
    for text in texts:
        found |= _is(batch, column, text.encode())
    return found


def _is(batch: Batch, column: str, value: bytes) -> Mask:
    found = batch.records[f"{column}_length"] == len(value)
    if value:
        at = batch.records[f"{column}_at"][found]
        data = batch.buffer[at[:, None] + np.arange(len(value))]
        found[found] = (data == np.frombuffer(value, np.uint8)).all(axis=1)
    return found


def _has_key(batch: Batch, key: str) -> Mask:
    """Return which records have the key among KEYS, which are separated by spaces."""
    wanted = key.encode()
    lengths = batch.records["keys_length"]
    found = np.zeros(len(lengths), np.bool_)
    for row in np.flatnonzero(lengths >= len(wanted)).tolist():
        at = int(batch.records["keys_at"][row])
        keys = batch.buffer[at : at + int(lengths[row])].tobytes()
        found[row] = wanted in keys and wanted in keys.split(_SEPARATOR)
    return found


_SEPARATOR = KEY_SEPARATOR.encode()
