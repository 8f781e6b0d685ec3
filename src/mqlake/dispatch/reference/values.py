"""Gather the values of columns out of records (twin of `compiled.values`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from mqlake.dispatch.reference.describe import find_properties
from mqlake.formats import host, properties
from mqlake.formats.message_id import encode_message_id

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Flags, Ints, Longs

_KEY_SEPARATOR = properties.KEY_SEPARATOR.encode()


def gather_i32(buffer: Bytes, at: Longs) -> Ints:
    return _ints(_number(buffer, start, 4) for start in at.tolist())


def gather_i64(buffer: Bytes, at: Longs) -> Longs:
    return _longs(_number(buffer, start, 8) for start in at.tolist())


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
    offsets = gather_i64(buffer, offset_at).tolist()
    hosts = _hosts(buffer, host_at, is_v6)
    return _joined(
        encode_message_id(part, offset).encode()
        for part, offset in zip(hosts, offsets, strict=True)
    )


def key_spans(buffer: Bytes, at: Longs, lengths: Ints) -> tuple[Ints, Longs, Ints]:
    starts, found = [0], list[tuple[int, int]]()
    for start, span in zip(at.tolist(), _spans(buffer, at, lengths), strict=True):
        for key in span.split(_KEY_SEPARATOR):
            if key:
                found.append((start, len(key)))
            start += len(key) + 1
        starts.append(len(found))
    return _ints(starts), _longs(at for at, _ in found), _ints(length for _, length in found)


def property_spans(
    buffer: Bytes, at: Longs, lengths: Ints
) -> tuple[Ints, Longs, Ints, Longs, Ints]:
    starts, names, values = [0], list[tuple[int, int]](), list[tuple[int, int]]()
    for start, span in zip(at.tolist(), _spans(buffer, at, lengths), strict=True):
        for name, (value_at, value_length) in find_properties(span).items():
            # The name stands before any of its values; the last one is as good as the first.
            names.append((start + value_at - len(name) - 1, len(name)))
            values.append((start + value_at, value_length))
        starts.append(len(names))
    return (
        _ints(starts),
        _longs(at for at, _ in names),
        _ints(length for _, length in names),
        _longs(at for at, _ in values),
        _ints(length for _, length in values),
    )


def _number(buffer: Bytes, at: int, size: int) -> int:
    return int.from_bytes(buffer[at : at + size].tobytes(), "big", signed=True)


def _spans(buffer: Bytes, at: Longs, lengths: Ints) -> Iterable[bytes]:
    for start, length in zip(at.tolist(), lengths.tolist(), strict=True):
        yield buffer[start : start + length].tobytes()


def _hosts(buffer: Bytes, at: Longs, is_v6: Flags) -> Iterable[bytes]:
    sizes = _ints(host.V6_SIZE if v6 else host.V4_SIZE for v6 in is_v6.tolist())
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
