"""Tables of `mqlake follow` on a server of S3: killed, restarted, merged, checked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from mqlake.cli.app import run
from mqlake.lake.tables.lake_options import delta_options, iceberg_options
from mqlake.store import BlockingMessageStore, Message
from tests.lake.union.kept_lake import union_rows
from tests.peer.python_build import PythonMissingError
from tests.peer.s3_server import BUCKET, SECRET, S3Server
from tests.spark.shared_session import shared_with_commands

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.usefixtures("spark")]

MESSAGES = 400
_PATIENCE = 120.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        started = S3Server(tmp_path_factory.mktemp("s3"))
    except PythonMissingError as reason:
        pytest.skip(f"without a server of S3: {reason}")
    yield started
    started.close()


@pytest.fixture(scope="module")
def spark() -> Iterator[None]:
    with shared_with_commands():
        yield


def put(path: Path, start: int, end: int) -> None:
    with BlockingMessageStore.open(path) as live:
        for number in range(start, end):
            live.put(Message(("Orders", "%RETRY%G")[number % 2], str(number).encode()))


def arguments(server: S3Server, tmp_path: Path, format_: str) -> list[str]:
    place = format_ if format_ == "delta" else tmp_path.name
    given = [str(tmp_path / "store"), "--to", format_, "--out", f"s3://{BUCKET}/{place}/table"]
    given += ["--checkpoint", str(tmp_path / "checkpoint")]
    for name, value in server.settings.items():
        given += ["--storage-option", f"{name}={value}"]
    if format_ == "iceberg":
        given += ["--catalog", f"sqlite:///{tmp_path}/catalog.db"]
    return given


def bodies(server: S3Server, tmp_path: Path, format_: str) -> list[int]:
    found: Any
    if format_ == "delta":
        url = f"s3://{BUCKET}/delta/table"
        options = delta_options(url, server.settings)
        if not DeltaTable.is_deltatable(url, options):
            return []
        found = DeltaTable(url, storage_options=options).to_pyarrow_table()
    else:
        catalog = load_catalog(
            "default",
            uri=f"sqlite:///{tmp_path}/catalog.db",
            **iceberg_options("s3://", server.settings),
        )
        if not catalog.namespace_exists("mqlake") or not catalog.table_exists("mqlake.table"):
            return []
        found = catalog.load_table("mqlake.table").scan().to_arrow()
    return sorted(int(body) for body in found["body"].to_pylist())


def kill_one(server: S3Server, tmp_path: Path, format_: str) -> None:
    """Start a program that follows the store, and kill it once the table has messages."""
    given = arguments(server, tmp_path, format_)
    slow = ["--max-offsets-per-trigger", "20", "--target-lag", "0", "--compact-every", "3"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mqlake", "follow", *given, *slow],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        deadline = time.monotonic() + _PATIENCE
        try:
            while not bodies(server, tmp_path, format_):
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.5)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize(
    ("format_", "is_killed"),
    [
        pytest.param("delta", True, id="delta"),
        pytest.param("iceberg", False, id="iceberg"),
        pytest.param("iceberg", True, id="iceberg-killed", marks=pytest.mark.nightly),
    ],
)
def test_killed_and_restarted(
    server: S3Server,
    tmp_path: Path,
    format_: str,
    is_killed: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(tmp_path / "store", 0, MESSAGES)
    given = arguments(server, tmp_path, format_)
    if is_killed:
        kill_one(server, tmp_path, format_)
    put(tmp_path / "store", MESSAGES, MESSAGES + 50)
    end = [*given, "--keep-versions", "0"]
    assert run(["follow", *end, "--once"]) == 0
    assert bodies(server, tmp_path, format_) == list(range(MESSAGES + 50))
    captured = capsys.readouterr()
    log = (tmp_path / "log").read_text() if is_killed else ""
    assert SECRET not in log + captured.out + captured.err
    assert run(["follow", *given, "--check"]) == 0
    assert run(["follow", *given, "--replay"]) == 0
    put(tmp_path / "store", MESSAGES + 50, MESSAGES + 60)
    asked = {"table": f"s3a://{BUCKET}/delta/table", "columns": "topic,body", **server.settings}
    if format_ == "iceberg":
        asked |= {"table": "mqlake.table", "catalog": f"sqlite:///{tmp_path}/catalog.db"}
    both = union_rows(asked)
    assert sorted(int(bytes(row["body"])) for row in both) == list(range(MESSAGES + 60))
    orders = union_rows({**asked, "subscribe": "Orders"})
    assert len(orders) == (MESSAGES + 60) // 2


def test_a_second_checkpoint_is_refused(
    server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "store", 0, 2)
    given = arguments(server, tmp_path, "delta")
    given[given.index("--out") + 1] = f"s3://{BUCKET}/second/table"
    assert run(["follow", *given, "--once"]) == 0
    given[given.index("--checkpoint") + 1] = str(tmp_path / "another")
    assert run(["follow", *given, "--once"]) != 0
    assert "has messages of" in capsys.readouterr().err
