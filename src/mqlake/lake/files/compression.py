"""Which codec compresses which column of a data file."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

USUAL = "zstd"
IF_HARD = "snappy"
"""For bodies that are encrypted or compressed already: it gives up on them ten times as fast."""

WORTH = 0.95
"""Bodies are hard to compress if Zstandard leaves more than this share of them."""

BODY = "body"
_SAMPLE = 64 << 10
"""Bytes of bodies that are compressed to decide."""


def codecs(rows: Any) -> str | dict[str, str]:
    """Return the codec of all columns of a file, or of each leaf, given its first rows (a table).

    Zstandard on bodies that hardly shrink would take a third of the time that writing takes.
    """
    if BODY not in rows.schema.names or not _is_hard(_sample(rows.column(BODY))):
        return USUAL
    found = {leaf: USUAL for field in rows.schema for leaf in leaves(field.name, field.type)}
    found[BODY] = IF_HARD
    return found


def leaves(path: str, kind: Any) -> Iterator[str]:
    """Yield the paths of a column's leaves, as Parquet names them."""
    if pa.types.is_map(kind):
        yield from leaves(f"{path}.key_value.key", kind.key_type)
        yield from leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(f"{path}.{field.name}", field.type)
    else:
        yield path


def _sample(bodies: Any) -> bytes:
    """Return the first bodies, at most `_SAMPLE` bytes of them."""
    if not (pa.types.is_binary(bodies.type) or pa.types.is_large_binary(bodies.type)):
        return b""
    found, size = list[bytes](), 0
    for body in bodies:
        if body.is_valid:
            found.append(body.as_buffer()[: _SAMPLE - size].to_pybytes())
            size += len(found[-1])
        if size >= _SAMPLE:
            break
    return b"".join(found)


def _is_hard(sample: bytes) -> bool:
    compressed = pa.Codec(USUAL, compression_level=1).compress(sample)
    return len(compressed) > WORTH * len(sample) > 0
