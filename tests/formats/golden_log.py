"""The commit logs of the golden stores, record by record."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from tests.golden import GoldenStore, store

PAGE = 1 << 20


@functools.cache
def golden(name: str) -> GoldenStore:
    return store(name)


@functools.cache
def messages(name: str) -> list[dict[str, Any]]:
    return golden(name).messages()


def record_bytes(name: str, offset: int, size: int) -> bytes:
    """Return `size` bytes at a physical offset, 0 bytes of which may lie in the next file."""
    folder = golden(name).path / "commitlog"
    segments = sorted(folder.iterdir())
    segment = max(path for path in segments if int(path.name) <= offset)
    with segment.open("rb") as file:
        file.seek(offset - int(segment.name))
        return file.read(size)


def records(name: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield what Java read of each record, and the record's bytes."""
    start, window = 0, b""
    for message in messages(name):
        at, size = message["physicalOffset"], message["size"]
        if not start <= at <= at + size <= start + len(window):
            start, window = at, record_bytes(name, at, max(size, PAGE))
        yield message, window[at - start : at - start + size]
