"""The bits of the system flag."""

from __future__ import annotations

import pytest

from mqlake.formats import sys_flag


@pytest.mark.parametrize(
    ("flag", "queued", "indexed"),
    [(0, True, True), (4, False, True), (8, True, True), (12, False, False), (0x309, True, True)],
)
def test_what_dispatch_does(flag: int, queued: bool, indexed: bool) -> None:
    assert (sys_flag.is_queued(flag), sys_flag.is_indexed(flag)) == (queued, indexed)
    assert sys_flag.transaction(flag) == flag & 12


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (0, None), (0x300, None), (0x001, "zlib"), (0x101, "lz4"), (0x201, "zstd"),
        (0x301, "zlib"), (0x401, "unknown"),
    ],
)  # fmt: skip
def test_compression(flag: int, expected: str | None) -> None:
    assert sys_flag.compression(flag) == expected


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (0, "0"),
        (0x309, "COMPRESSED|TRANSACTION_COMMIT|COMPRESSION_ZLIB"),
        (0x30, "BORN_HOST_V6|STORE_HOST_V6"),
        (12, "TRANSACTION_ROLLBACK"),
        (0xC2, "MULTI_TAGS|NEED_UNWRAP|INNER_BATCH"),
        (0x1400, "0x1400"),
        (-(1 << 31), "0x80000000"),
    ],
)
def test_describe(flag: int, expected: str) -> None:
    assert sys_flag.describe(flag) == expected
