"""Write the chosen columns of records (twin of `compiled.values`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from mqlake.dispatch.value_columns import (
    BITS,
    INTS,
    LONGS,
    OF_PROPERTIES,
    TEXTS,
    Keys,
    OptionalTexts,
    Pairs,
    Texts,
    Times,
    Values,
)
from mqlake.formats import record
from mqlake.formats.properties import UNIQ_KEY
from mqlake.formats.record import Record

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Batch, Ints

_FIELDS: dict[str, Callable[[Record], Any]] = {
    "queueId": lambda one: one.queue_id,
    "size": lambda one: one.size,
    "bodyCrc": lambda one: one.body_crc,
    "sysFlag": lambda one: one.sys_flag,
    "flag": lambda one: one.flag,
    "reconsumeTimes": lambda one: one.reconsume_times,
    "queueOffset": lambda one: one.queue_offset,
    "physicalOffset": lambda one: one.physical_offset,
    "preparedTransactionOffset": lambda one: one.prepared_transaction_offset,
    "bornTimestamp": lambda one: one.born_timestamp,
    "storeTimestamp": lambda one: one.store_timestamp,
    "topic": lambda one: one.topic.encode(),
    "bornHost": lambda one: one.born_host.encode(),
    "storeHost": lambda one: one.store_host.encode(),
    "msgId": lambda one: one.message_id.encode(),
    "body": lambda one: one.body,
}
_TIMES = ("bornTimestamp", "storeTimestamp")


def values(batch: Batch, chosen: int, times: Times) -> Values:
    import numpy as np

    starts = (batch.records["physical_offset"] - batch.base).tolist()
    records = [record.decode(batch.buffer.data, start, crc=False) for start in starts]
    are_text = not _are_any(OF_PROPERTIES, chosen) or all(
        _is_text(batch, row) for row in range(len(starts))
    )
    if not are_text:
        chosen &= ~sum(BITS[name] for name in OF_PROPERTIES)
    count = len(records)

    def fields(name: str) -> list[Any]:
        found = [_FIELDS[name](one) for one in records]
        if name in _TIMES:
            return [min(max(t, times.first), times.last) * times.per_millisecond for t in found]
        return found

    def of_chosen(name: str, found: Iterable[Any]) -> list[Any] | None:
        return list(found) if chosen & BITS[name] else None

    ints = [fields(name) for name in INTS if chosen & BITS[name]]
    longs = [fields(name) for name in LONGS if chosen & BITS[name]]
    tags = of_chosen("tags", ((one.tags or "").encode() for one in records))
    unique = of_chosen("uniqKey", (one.properties.get(UNIQ_KEY, "").encode() for one in records))
    keys = of_chosen("keys", ([key.encode() for key in one.keys] for one in records))
    pairs = of_chosen("properties", (list(one.properties.items()) for one in records))
    names = None if pairs is None else [name.encode() for name, _ in chain(*pairs)]
    texts = None if pairs is None else [value.encode() for _, value in chain(*pairs)]
    return Values(
        np.array(ints, np.int32).reshape(len(ints), count),
        np.array(longs, np.int64).reshape(len(longs), count),
        tuple(Texts(*_joined(fields(name) if chosen & BITS[name] else None)) for name in TEXTS),
        are_text,
        OptionalTexts(*_present(tags), *_joined(tags)),
        OptionalTexts(*_present(unique), *_joined(unique)),
        Keys(_starts(keys), *_joined(None if keys is None else list(chain(*keys)))),
        Pairs(_starts(pairs), *_joined(names), *_joined(texts)),
    )


def _are_any(names: Iterable[str], chosen: int) -> bool:
    return any(chosen & BITS[name] for name in names)


def _is_text(batch: Batch, row: int) -> bool:
    found = batch.records[row]
    at = int(found["properties_at"])
    try:
        batch.buffer[at : at + int(found["properties_length"])].tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def _present(texts: Sequence[bytes] | None) -> tuple[int, Any]:
    import numpy as np

    present = np.array([bool(text) for text in texts or ()], np.bool_)
    return len(present) - int(present.sum()), np.packbits(present, bitorder="little")


def _starts(lists: Sequence[Sized] | None) -> Ints:
    import numpy as np

    lengths = None if lists is None else accumulate(map(len, lists), initial=0)
    return np.array([] if lengths is None else list(lengths), np.int32)


def _joined(parts: Sequence[bytes] | None) -> tuple[Any, Any]:
    import numpy as np

    return _starts(parts), np.frombuffer(b"".join(parts or ()), np.uint8)
