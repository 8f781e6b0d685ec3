"""Dead letters of tables on S3, of a Delta Lake table and of one in a REST catalog.

Each table is then checked, and read as one with the log.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.lake.follow.dead_letters import options_of
from mqlake.lake.tables.opening import open_table
from mqlake.spark.follow import FollowOptions, Format, check, follow, replay
from mqlake.spark.follow.body_columns import parse_format
from mqlake.spark.follow.job import with_body_fields
from mqlake.spark.session import Session
from mqlake.store import BlockingMessageStore, Message
from tests.peer.python_build import PythonMissingError
from tests.peer.s3_server import ACCESS, BUCKET, SECRET, TABLES, S3Server
from tests.query.store.rows import batch_rows
from tests.spark.shared_session import SHARED

pytestmark = [pytest.mark.peer, pytest.mark.spark]

SMALL = {"mappedFileSizeCommitLog": 1 << 20}
"""A segment that is read and written whole, and searched after each damage."""
MESSAGES = 60
MALFORMED = (7, 20, 33)
DAMAGED = (12, 41)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        started = S3Server(tmp_path_factory.mktemp("s3"))
    except PythonMissingError as reason:
        pytest.skip(f"without a server of S3: {reason}")
    started.make_catalog()
    yield started
    started.close()


@pytest.fixture
def session() -> Session:
    return SHARED.open()


def put(path: Path, start: int, end: int) -> None:
    with BlockingMessageStore.open(path, SMALL) as live:
        for number in range(start, end):
            body = b"no JSON" if number in MALFORMED else b'{"id": %d}' % number
            live.put(Message("AB"[number % 2], body))


def damage(path: Path) -> list[int]:
    """Flip a bit in the bodies of two records; return their sizes."""
    rows = batch_rows(path, columns="physicalOffset,size")
    (segment,) = (path / "commitlog").iterdir()
    log = bytearray(segment.read_bytes())
    for number in DAMAGED:
        row = rows[number]
        log[log.index(b'{"id"', row["physicalOffset"], row["physicalOffset"] + row["size"])] ^= 1
    segment.write_bytes(log)
    return [rows[number]["size"] for number in DAMAGED]


def options(server: S3Server, tmp_path: Path, format_: Format) -> FollowOptions:
    place = f"{BUCKET}/table" if format_ is Format.DELTA else f"{TABLES}/mqlake/table"
    is_in_catalog = format_ is Format.ICEBERG
    return FollowOptions(
        store=tmp_path / "store",
        checkpoint=tmp_path / "checkpoint",
        out=tmp_path / "checkpoint" / "table" / "table",
        url=f"s3://{place}",
        storage=server.settings,
        format=format_,
        once=True,
        catalog=server.catalog if is_in_catalog else None,
        catalog_options={
            "type": "rest",
            "warehouse": f"s3://{TABLES}",
            "credential": f"{ACCESS}:{SECRET}",
            "oauth2-server-uri": f"{server.catalog}/v1/oauth/tokens",
        }
        if is_in_catalog
        else {},
        body=parse_format("json:id bigint", {}),
    )


def scan(given: FollowOptions, *columns: str) -> list[dict[str, Any]]:
    return [row for batch in open_table(given).scan(columns) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "format_", [pytest.param(Format.DELTA, marks=pytest.mark.nightly), Format.ICEBERG]
)
def test_dead_letters(server: S3Server, session: Session, tmp_path: Path, format_: Format) -> None:
    given = options(server, tmp_path, format_)
    put(given.store, 0, MESSAGES)
    sizes = damage(given.store)
    assert follow(session, given).dead_letters == len(DAMAGED)
    put(given.store, MESSAGES, MESSAGES + 10)
    other = msgspec.structs.replace(given, body=parse_format("json:id string", {}))
    assert follow(session, other).dead_letters == 10

    typed = with_body_fields(session, given)
    report = check(typed, LocalEngine(2))
    assert report.ok
    assert report.damaged_bytes == report.damaged_bytes_noted == sum(sizes)
    rows = scan(typed, "id", "_corrupt")
    assert len(rows) == MESSAGES - len(DAMAGED)
    assert [row["_corrupt"] for row in rows if row["id"] is None] == [b"no JSON"] * len(MALFORMED)
    letters = scan(options_of(given), "kind", "raw", "length")
    assert Counter(row["kind"] for row in letters) == {"damage": len(DAMAGED), "refused": 10}
    assert all(len(row["raw"]) == row["length"] for row in letters)

    assert replay(given, session).messages == 10
    assert check(typed, LocalEngine(2)).ok
    put(given.store, MESSAGES + 10, MESSAGES + 15)
    assert union_count(server, given) == MESSAGES + 15 - len(DAMAGED)


_UNION = """
import sys
import msgspec
from tests.lake.union.kept_lake import union_rows
print(len(union_rows(msgspec.json.decode(sys.argv[1]))))
"""


def union_count(server: S3Server, given: FollowOptions) -> int:
    """Count the rows of table and log in a process that gets the credential as users give it."""
    asked: dict[str, str] = {"columns": "topic,queueOffset", **server.settings}
    if given.catalog is None:
        asked["table"] = given.place
    else:
        asked |= {"table": "mqlake.table", "catalog": given.catalog}
    variables = {
        f"PYICEBERG_CATALOG__DEFAULT__{name.upper().replace('-', '_')}": value
        for name, value in given.catalog_options.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", _UNION, msgspec.json.encode(asked)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
