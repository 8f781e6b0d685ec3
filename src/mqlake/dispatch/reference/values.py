"""Gather the values of columns out of records (twin of `compiled.values`)."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from itertools import accumulate, chain
from struct import Struct
from typing import TYPE_CHECKING

from mqlake.dispatch.answers import Heads
from mqlake.dispatch.reference.describe import find_properties
from mqlake.formats import host, properties, record, sys_flag
from mqlake.formats.message_id import encode_message_id

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Batch, Bytes, Flags, Ints, Longs

_KEY_SEPARATOR = properties.KEY_SEPARATOR.encode()
_I32, _I64 = Struct(">i"), Struct(">q")
_HOST_SIZE = {False: host.V4_SIZE, True: host.V6_SIZE}


def heads(batch: Batch) -> Heads:
    import numpy as np

    data = batch.buffer.data
    starts = (batch.records["physical_offset"] - batch.base).tolist()
    flags = batch.records["sys_flag"].tolist()
    born_at = [start + record.BORN_HOST_AT for start in starts]
    born_v6 = [bool(each & sys_flag.BORN_HOST_V6) for each in flags]
    store_at = [at + _HOST_SIZE[v6] + 8 for at, v6 in zip(born_at, born_v6, strict=True)]
    store_v6 = [bool(each & sys_flag.STORE_HOST_V6) for each in flags]
    behind = [at + _HOST_SIZE[v6] for at, v6 in zip(store_at, store_v6, strict=True)]
    return Heads(
        _ints(_I32.unpack_from(data, start + record.BODY_CRC_AT)[0] for start in starts),
        _ints(_I32.unpack_from(data, start + record.FLAG_AT)[0] for start in starts),
        _longs(_I64.unpack_from(data, start + record.BORN_TIMESTAMP_AT)[0] for start in starts),
        _ints(_I32.unpack_from(data, at)[0] for at in behind),
        _longs(_I64.unpack_from(data, at + 4)[0] for at in behind),
        _longs(born_at),
        np.array(born_v6, np.bool_),
        _longs(store_at),
        np.array(store_v6, np.bool_),
    )


def copy_spans(buffer: Bytes, at: Longs, lengths: Ints) -> tuple[Ints, Bytes]:
    return _joined(_spans(buffer, at, lengths))


def are_text(buffer: Bytes, at: Longs, lengths: Ints) -> bool:
    try:
        for span in _spans(buffer, at, lengths):
            span.decode()
    except UnicodeDecodeError:
        return False
    return True


def host_texts(buffer: Bytes, at: Longs, is_v6: Flags) -> tuple[Ints, Bytes]:
    return _joined(host.decode_host(part).encode() for part in _hosts(buffer, at, is_v6))


def message_ids(
    buffer: Bytes, host_at: Longs, is_v6: Flags, offset_at: Longs
) -> tuple[Ints, Bytes]:
    offsets = [_I64.unpack_from(buffer.data, each)[0] for each in offset_at.tolist()]
    hosts = _hosts(buffer, host_at, is_v6)
    return _joined(
        encode_message_id(part, offset).encode()
        for part, offset in zip(hosts, offsets, strict=True)
    )


def key_texts(buffer: Bytes, at: Longs, lengths: Ints) -> tuple[Ints, Ints, Bytes]:
    keys = [
        [key for key in span.split(_KEY_SEPARATOR) if key] for span in _spans(buffer, at, lengths)
    ]
    return _starts(keys), *_joined(chain.from_iterable(keys))


def property_texts(
    buffer: Bytes, at: Longs, lengths: Ints
) -> tuple[Ints, Ints, Bytes, Ints, Bytes]:
    spans = list(_spans(buffer, at, lengths))
    pairs = [
        [(name, span[at : at + length]) for name, (at, length) in find_properties(span).items()]
        for span in spans
    ]
    names = _joined(name for each in pairs for name, _ in each)
    return _starts(pairs), *names, *_joined(value for each in pairs for _, value in each)


def _starts(lists: Iterable[Sized]) -> Ints:
    return _ints(accumulate(map(len, lists), initial=0))


def _spans(buffer: Bytes, at: Longs, lengths: Ints) -> Iterable[bytes]:
    for start, length in zip(at.tolist(), lengths.tolist(), strict=True):
        yield buffer[start : start + length].tobytes()


def _hosts(buffer: Bytes, at: Longs, is_v6: Flags) -> Iterable[bytes]:
    sizes = _ints(_HOST_SIZE[v6] for v6 in is_v6.tolist())
    return _spans(buffer, at, sizes)


def _joined(parts: Iterable[bytes]) -> tuple[Ints, Bytes]:
    import numpy as np

    parts = list(parts)
    offsets = accumulate((len(part) for part in parts), initial=0)
    return _ints(offsets), np.frombuffer(b"".join(parts), np.uint8)


def _ints(values: Iterable[int]) -> Ints:
    import numpy as np

    return np.array(list(values), np.int32)


def _longs(values: Iterable[int]) -> Longs:
    import numpy as np

    return np.array(list(values), np.int64)
