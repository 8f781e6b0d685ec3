"""Split inner batches: records that contain several messages (docs/formats/message_batch.md).

Upstream: `PullAPIWrapper.processPullResult`, `MessageDecoder.decodeMessage`.
"""

# pyright: basic
# NumPy's fields carry no types, and pyarrow has none.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from mqlake.dispatch.adjacent import PADDING, located
from mqlake.dispatch.arrow import to_arrow
from mqlake.dispatch.batch import Batch
from mqlake.dispatch.reference.describe import find_properties
from mqlake.dispatch.value_columns import MILLISECONDS, Times
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.properties import KEYS, TAGS, UNIQ_KEY
from mqlake.formats.record import Fault
from mqlake.protocol.messages.body_compression import MissingCodecError
from mqlake.protocol.messages.inner_batches import messages_of

_PROPERTIES = {
    "tags": TAGS.encode(),
    "keys": KEYS.encode(),
    "unique_key": UNIQ_KEY.encode(),
}
_OF_THE_RECORD = ("physical_offset", "store_timestamp", "size", "queue", "queue_id", "fault")
"""What all messages of an inner batch have in common."""


class InnerMessages(Batch):
    """The messages of one inner batch.

    All of them have the physical offset and the size of their record. The column `tags_code`
    contains their positions in the buffer instead, because they have no entry in a queue.
    """

    __slots__ = ()


def split(batch: Batch) -> Iterator[Batch]:
    """Yield the records of a batch in their order, with inner batches as `InnerMessages`.

    An inner batch that cannot be split stays a record.

    Args:
        batch: scanned with any `Want`.
    """
    records = batch.records
    is_inner = (records["sys_flag"] & FLAGS == FLAGS) & (records["fault"] == Fault.GOOD)
    done = 0
    for row in np.flatnonzero(is_inner).tolist():
        found = _messages(batch, row)
        if found is None:
            continue
        if row > done:
            yield batch._replace(records=records[done:row])
        yield found
        done = row + 1
    if done == 0:
        yield batch
    elif done < len(records):
        yield batch._replace(records=records[done:])


def columns_of(batch: Batch, names: Sequence[str], times: Times = MILLISECONDS) -> Any:
    """Return columns of records, or of the messages of an inner batch, by `dispatch.to_arrow`."""
    if not isinstance(batch, InnerMessages):
        return to_arrow(batch, names, times=times)
    records = batch.records.copy()
    records["physical_offset"] = records["tags_code"]
    made = to_arrow(Batch(batch.buffer, 0, records, batch.keys, batch.table), names, times=times)
    if "size" not in names:
        return made
    import pyarrow as pa

    number = made.schema.get_field_index("size")
    sizes = pa.array(np.ascontiguousarray(batch.records["size"]), pa.int32())
    return made.set_column(number, made.schema.field(number), sizes)


def _messages(batch: Batch, row: int) -> InnerMessages | None:
    """Return the messages of a record; None if it cannot be split.

    Raises:
        FormatError: the package of a codec is missing.
    """
    wrapper = batch.records[row]
    at = int(wrapper["physical_offset"]) - batch.base
    data = batch.buffer[at : at + int(wrapper["size"])].tobytes()
    try:
        found = messages_of(record.decode(data))
    except MissingCodecError as error:
        raise FormatError(f"{error}, or set the option decompress to false") from None
    except FormatError:
        return None
    if not found:
        return None
    starts = np.array(list(accumulate(map(len, found), initial=0))[:-1], np.int64)
    joined = b"".join((*found, PADDING))
    records = located(joined, starts).records
    records["tags_code"] = starts
    for name in _OF_THE_RECORD:
        records[name] = wrapper[name]
    records["queue_offset"] = wrapper["queue_offset"] + np.arange(len(found))
    for name in _PROPERTIES:
        records[f"{name}_at"] = records[f"{name}_length"] = 0
    for message in records:
        _fill_places(message, joined)
    return InnerMessages(np.frombuffer(joined, np.uint8), 0, records, batch.keys[:0], batch.table)


def _fill_places(message: Any, data: bytes) -> None:
    """Fill where the properties that select messages are."""
    start = int(message["properties_at"])
    properties = data[start : start + int(message["properties_length"])]
    places = find_properties(properties)
    for name, key in _PROPERTIES.items():
        at, length = places.get(key, (0, 0))
        if length:
            message[f"{name}_at"], message[f"{name}_length"] = start + at, length
