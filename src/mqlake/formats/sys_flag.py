"""Read the bits of a record's system flag (docs/formats/sys_flag.md).

Upstream: `MessageSysFlag`, `CompressionType`.
"""

from __future__ import annotations

COMPRESSED = 1 << 0
MULTI_TAGS = 1 << 1
TRANSACTION_MASK = 3 << 2
TRANSACTION_NONE = 0 << 2
TRANSACTION_PREPARED = 1 << 2
TRANSACTION_COMMIT = 2 << 2
TRANSACTION_ROLLBACK = 3 << 2
BORN_HOST_V6 = 1 << 4
STORE_HOST_V6 = 1 << 5
NEED_UNWRAP = 1 << 6
INNER_BATCH = 1 << 7
COMPRESSION_TYPE_MASK = 7 << 8
COMPRESSION_LZ4 = 1 << 8
COMPRESSION_ZSTD = 2 << 8
COMPRESSION_ZLIB = 3 << 8

_FLAGS = {
    COMPRESSED: "COMPRESSED",
    MULTI_TAGS: "MULTI_TAGS",
    BORN_HOST_V6: "BORN_HOST_V6",
    STORE_HOST_V6: "STORE_HOST_V6",
    NEED_UNWRAP: "NEED_UNWRAP",
    INNER_BATCH: "INNER_BATCH",
}
_TRANSACTIONS = {
    TRANSACTION_PREPARED: "TRANSACTION_PREPARED",
    TRANSACTION_COMMIT: "TRANSACTION_COMMIT",
    TRANSACTION_ROLLBACK: "TRANSACTION_ROLLBACK",
}
_COMPRESSIONS = {
    COMPRESSION_LZ4: "COMPRESSION_LZ4",
    COMPRESSION_ZSTD: "COMPRESSION_ZSTD",
    COMPRESSION_ZLIB: "COMPRESSION_ZLIB",
}
_KNOWN = sum(_FLAGS) | TRANSACTION_MASK | COMPRESSION_TYPE_MASK


def transaction(flag: int) -> int:
    """Return the transaction bits: one of the TRANSACTION_* constants."""
    return flag & TRANSACTION_MASK


def is_queued(flag: int) -> bool:
    """Return whether RocketMQ gives such a record a consume-queue entry.

    Half messages (PREPARED) and ROLLBACK marks get none: `CommitLogDispatcherBuildConsumeQueue`.
    """
    return flag & TRANSACTION_MASK in (TRANSACTION_NONE, TRANSACTION_COMMIT)


def is_indexed(flag: int) -> bool:
    """Return whether RocketMQ indexes such a record's keys: all but ROLLBACK (`IndexService`)."""
    return flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK


def compression(flag: int) -> str | None:
    """Return how the body is compressed: "lz4", "zstd", "zlib", None, or "unknown".

    Producers before compression types leave the type bits 0, and mean zlib.
    """
    if not flag & COMPRESSED:
        return None
    kind = flag & COMPRESSION_TYPE_MASK or COMPRESSION_ZLIB
    return _COMPRESSIONS.get(kind, "COMPRESSION_unknown").removeprefix("COMPRESSION_").lower()


def describe(flag: int) -> str:
    """Return the names of the set bits joined by `|`, unknown bits in hex, "0" for none."""
    flag &= 0xFFFFFFFF
    names = [name for bit, name in _FLAGS.items() if flag & bit]
    rest = flag & ~_KNOWN
    if kind := flag & TRANSACTION_MASK:
        names.append(_TRANSACTIONS[kind])
    if kind := flag & COMPRESSION_TYPE_MASK:
        if kind in _COMPRESSIONS:
            names.append(_COMPRESSIONS[kind])
        else:
            rest |= kind
    if rest:
        names.append(hex(rest))
    return "|".join(names) or "0"
