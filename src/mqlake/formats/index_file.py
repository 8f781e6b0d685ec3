"""Read index files: header, hash slots, chained entries (docs/formats/index_file.md).

Upstream: `IndexFile`, `IndexHeader`, `IndexService`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats import properties
from mqlake.formats.dialect import Dialect

HEADER = Struct(
    ">"
    "q"  # begin timestamp: store time of the first entry's record
    "q"  # end timestamp: store time of the last entry's record
    "q"  # begin physical offset
    "q"  # end physical offset
    "i"  # slots in use
    "i"  # index count: number the next entry gets; 1 in an empty file
)
SLOT = Struct(">i")
ENTRY = Struct(
    ">"
    "i"  # key hash
    "q"  # physical offset
    "i"  # seconds after the begin timestamp
    "i"  # previous entry of the same slot; 0 for none
)
HEADER_SIZE = HEADER.size
SLOT_SIZE = SLOT.size
ENTRY_SIZE = ENTRY.size

DEFAULT_SLOTS = 5_000_000
DEFAULT_MAX_ENTRIES = 20_000_000

_MAX_INT = 0x7FFFFFFF
_LONG = 1 << 64


class IndexHeader(NamedTuple):
    """The first 40 bytes: store timestamps in milliseconds, offsets in bytes."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    slot_count: int
    index_count: int


class IndexEntry(NamedTuple):
    """One entry: key hash, the record's physical offset (bytes), age (seconds), chain link."""

    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


def file_size(slots: int = DEFAULT_SLOTS, max_entries: int = DEFAULT_MAX_ENTRIES) -> int:
    """Return the bytes of a whole file."""
    return HEADER_SIZE + slots * SLOT_SIZE + max_entries * ENTRY_SIZE


def slot_at(slots: int, key_hash: int) -> int:
    """Return the byte position of the slot of a key hash (>= 0)."""
    return HEADER_SIZE + key_hash % slots * SLOT_SIZE


def entry_at(slots: int, number: int) -> int:
    """Return the byte position of an entry; numbers start at 1, place 0 stays empty."""
    return HEADER_SIZE + slots * SLOT_SIZE + number * ENTRY_SIZE


def decode_header(data: bytes | memoryview) -> IndexHeader:
    """Return the header; an index count below 1 reads as 1, as in RocketMQ.

    Raises:
        FormatError: fewer than 40 bytes.
    """
    if len(data) < HEADER_SIZE:
        raise FormatError(
            f"the header of an index file has {HEADER_SIZE} bytes, but this file has {len(data)}"
        )
    header = IndexHeader(*HEADER.unpack_from(data))
    return header if header.index_count > 0 else header._replace(index_count=1)


def encode_header(header: IndexHeader) -> bytes:
    """Return the 40 bytes of a header."""
    return HEADER.pack(*header)


def decode_entry(data: bytes | memoryview, slots: int, number: int) -> IndexEntry:
    """Return entry `number` (1 the first) of a file.

    Raises:
        FormatError: beyond the end of the file.
    """
    at = entry_at(slots, number)
    if slots < 1 or number < 1 or at + ENTRY_SIZE > len(data):
        raise FormatError(f"there is no index entry {number} in {len(data)} bytes")
    return IndexEntry(*ENTRY.unpack_from(data, at))


def encode_entry(entry: IndexEntry) -> bytes:
    """Return the 20 bytes of an entry."""
    return ENTRY.pack(*entry)


def seconds_since(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the whole seconds that an entry keeps, for times in milliseconds.

    Clamped to 0 … 2147483647, and 0 while a file has no begin timestamp. The difference wraps at
    64 bits and rounds towards zero, as Java's does. For a file's first entry `begin_timestamp` is
    the end timestamp of the file before (0 in a store's first file); its own is set thereafter.
    """
    if begin_timestamp <= 0:
        return 0
    difference = (store_timestamp - begin_timestamp) % _LONG
    return min(difference // 1000, _MAX_INT) if difference < _LONG // 2 else 0


def index_key(topic: str, key: str, kind: str | None = None) -> str:
    """Return the text whose hash is indexed: `topic#key`, `topic#T#tags` for kind "T"."""
    return f"{topic}#{kind}#{key}" if kind else f"{topic}#{key}"


def index_keys(topic: str, props: Mapping[str, str], dialect: Dialect) -> list[str]:
    """Return the texts that RocketMQ indexes for a record, in the order of their entries.

    The unique key, each of KEYS (repetitions kept), and the tags from 5.5 on. ROLLBACK records
    have none: see `sys_flag.is_indexed`. Upstream: `IndexService.buildIndex`.
    """
    keys = [props[properties.UNIQ_KEY]] if properties.UNIQ_KEY in props else []
    keys += properties.key_list(props)
    texts = [index_key(topic, key) for key in keys]
    if dialect is Dialect.V5_5 and (tags := props.get(properties.TAGS)):
        texts.append(index_key(topic, tags, "T"))
    return texts


def _all_is_here(start: int, end: int) -> None:
    pass


def walk_slot(
    buffer: bytes | memoryview,
    slots: int,
    max_entries: int,
    key_hash: int,
    load: Callable[[int, int], object] = _all_is_here,
) -> Iterator[IndexEntry]:
    """Yield the entries of a key hash's slot, newest first; some have another hash.

    `buffer` is a whole file, or as much of it as there is. A link that leads outside of the file
    or not backwards ends the walk, so it is finite whatever the bytes are. The header's count is
    not asked: after a crash, it may be older than the entries.

    Args:
        load: called with two positions before the bytes between them are looked at.
    """
    if key_hash < 0 or slots < 1 or slot_at(slots, key_hash) + SLOT_SIZE > len(buffer):
        return
    limit = min(max_entries, (len(buffer) - entry_at(slots, 0)) // ENTRY_SIZE)
    load(slot_at(slots, key_hash), slot_at(slots, key_hash) + SLOT_SIZE)
    (number,) = SLOT.unpack_from(buffer, slot_at(slots, key_hash))
    while 0 < number < limit:
        load(entry_at(slots, number), entry_at(slots, number) + ENTRY_SIZE)
        entry = IndexEntry(*ENTRY.unpack_from(buffer, entry_at(slots, number)))
        yield entry
        limit, number = number, entry.previous
