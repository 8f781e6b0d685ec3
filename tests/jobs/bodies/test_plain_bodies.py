"""Bodies are decompressed row by row, and what cannot be stays as it is."""

from __future__ import annotations

import sys
import zlib

import pyarrow as pa
import pytest

from mqlake.errors import FormatError
from mqlake.formats.sys_flag import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZSTD
from mqlake.jobs.bodies.plain_bodies import StoredBodies, decompressed
from mqlake.protocol.messages.body_compression import Codec, compress

TEXT = b"as the producer sent it; " * 20


def rows(*pairs: tuple[bytes | None, int | None]) -> pa.RecordBatch:
    bodies, flags = zip(*pairs, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(range(len(pairs)), pa.int64()),
            pa.array(bodies, pa.binary()),
            pa.array(flags, pa.int32()),
        ],
        names=["physicalOffset", "body", "sysFlag"],
    )


def all_of(made: pa.RecordBatch, most: int = 1 << 20) -> tuple[list[dict[str, object]], str]:
    stored = StoredBodies()
    parts = list(decompressed(made, stored, most))
    assert all(part.schema.equals(made.schema) for part in parts)
    said: list[str] = []
    stored.report(said.append)
    return pa.Table.from_batches(parts).to_pylist(), "".join(said)


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd"])
def test_each_codec(codec: Codec) -> None:
    body, flag = compress(TEXT, codec, 5)

    found, said = all_of(rows((b"plain", 0), (body, flag | 2), (b"", flag), (body, flag)))

    assert [row["body"] for row in found] == [b"plain", TEXT, b"", TEXT]
    assert [row["sysFlag"] for row in found] == [
        0,
        flag & ~COMPRESSED | 2,
        flag,
        flag & ~COMPRESSED,
    ]
    assert not said


def test_old_producers_do_not_name_the_codec() -> None:
    found, _ = all_of(rows((zlib.compress(TEXT), COMPRESSED)))
    assert (found[0]["body"], found[0]["sysFlag"]) == (TEXT, 0)


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (b"\x78\x9c no zlib data", COMPRESSED),
        (zlib.compress(TEXT)[:-5], COMPRESSED),
        (b"no frame", COMPRESSED | COMPRESSION_LZ4),
        (b"no frame", COMPRESSED | COMPRESSION_ZSTD),
        (TEXT, COMPRESSED | 7 << 8),
    ],
)
def test_damaged_bodies_stay_and_say_so(body: bytes, flag: int) -> None:
    found, said = all_of(rows((b"plain", 0), (body, flag)))
    assert (found[1]["body"], found[1]["sysFlag"]) == (body, flag)
    assert said.startswith("1 body cannot be decompressed")
    assert "the first: physicalOffset 1: " in said


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd"])
def test_a_bomb_stays_as_it_is(codec: Codec) -> None:
    bomb, flag = compress(bytes((64 << 20) + 1), codec, 5)
    found, said = all_of(rows((bomb, flag)))
    assert (found[0]["body"], found[0]["sysFlag"]) == (bomb, flag)
    assert said


def test_many_large_bodies_are_several_batches() -> None:
    body, flag = compress(bytes(1000), "zlib", 5)
    made = rows(*[(body, flag), (b"plain", 0)] * 50)

    parts = list(decompressed(made, StoredBodies(), 10_000))

    assert len(parts) == 5
    assert sum(part.num_rows for part in parts) == 100
    assert max(part.nbytes for part in parts) < 13_000
    assert [offset for part in parts for offset in part.column(0).to_pylist()] == list(range(100))


def test_rows_without_body_or_flag_stay() -> None:
    found, said = all_of(rows((None, COMPRESSED), (zlib.compress(TEXT), None), (b"x", 0)))
    assert [row["body"] for row in found] == [None, zlib.compress(TEXT), b"x"]
    assert not said


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    body, flag = compress(TEXT, "zstd", 5)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(FormatError, match=r"mqlake\[codecs\]'.*decompress to false"):
        all_of(rows((body, flag)))
