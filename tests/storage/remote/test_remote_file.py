"""Files of other machines."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from mqlake.errors import StoreError
from mqlake.storage.remote.remote_file import RemoteFile

DATA = random.Random(1).randbytes(1 << 18)
PART = len(DATA) // 4


def test_threads_share_a_view() -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(300):
            start = Barrier(4)
            file = RemoteFile("x", lambda at, length: DATA[at : at + length], len(DATA))

            def look(number: int, file: RemoteFile = file, start: Barrier = start) -> bytes:
                start.wait()
                at = number * PART
                file.load(at, at + PART)
                return bytes(file.sparse_view()[at : at + PART])

            assert b"".join(pool.map(look, range(4))) == DATA


def test_a_file_that_no_disk_has_room_for() -> None:
    file = RemoteFile("x", lambda _, length: bytes(length), 1 << 62, stored=4096)
    with pytest.raises(StoreError, match="x: cannot map 4611686018427387904 bytes of it"):
        file.sparse_view()


@pytest.mark.parametrize(("offset", "length"), [(0, 10), (5, 100), (8, 3), (9, 5), (20, 5)])
def test_reads_end_where_the_file_does(offset: int, length: int) -> None:
    whole = b"12345678" + bytes(2)
    file = RemoteFile("x", lambda at, size: whole[at : at + size], 10, stored=8)
    assert file.read(offset, length) == whole[offset : offset + length]


def test_a_file_that_has_become_shorter() -> None:
    file = RemoteFile("x", lambda at, size: b"123"[at : at + size], 10)
    with pytest.raises(StoreError, match="shorter since it was opened"):
        file.load(0, 10)
