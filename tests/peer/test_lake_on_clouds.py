"""Tables of `mqlake follow` on servers of Azure's and Google's protocols: written, checked, read
as one with the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.cli.app import run
from mqlake.errors import StoreError
from mqlake.jobs.archive.check import check
from mqlake.jobs.archive.job import archive
from mqlake.jobs.local import LocalEngine
from mqlake.storage.object_target import open_target
from mqlake.store import BlockingMessageStore, Message
from tests.golden import store
from tests.lake.union.kept_lake import union_rows
from tests.peer.cloud_servers import KEY, AzureServer, GoogleServer
from tests.peer.node_build import NodeMissingError
from tests.peer.python_build import PythonMissingError
from tests.query.store.rows import batch_rows
from tests.query.store.truth import comparable, expected_rows
from tests.spark.shared_session import shared_with_commands

pytestmark = pytest.mark.peer

Server = AzureServer | GoogleServer


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    try:
        started = AzureServer(tmp_path_factory.mktemp("azure"))
    except NodeMissingError as reason:
        pytest.skip(f"without Azurite: {reason}")
    yield started
    started.close()


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    try:
        started = GoogleServer(tmp_path_factory.mktemp("google"))
    except PythonMissingError as reason:
        pytest.skip(f"without fake-gcs-server: {reason}")
    yield started
    started.close()


@pytest.fixture(scope="module")
def spark() -> Iterator[None]:
    with shared_with_commands():
        yield


def put(path: Path, start: int, end: int) -> None:
    with BlockingMessageStore.open(path) as live:
        for number in range(start, end):
            live.put(Message("Orders", str(number).encode()))


def bodies(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(int(bytes(row["body"])) for row in rows)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("cloud", "format_"),
    [
        ("azure", "delta"),
        pytest.param("azure", "iceberg", marks=pytest.mark.nightly),
        ("google", "iceberg"),
    ],
)
def test_followed(
    cloud: str,
    format_: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server: Server = request.getfixturevalue(cloud)
    path, url = tmp_path / "store", f"{server.url}/{format_}/table"
    put(path, 0, 30)
    given = [str(path), "--to", format_, "--out", url, "--checkpoint", str(tmp_path / "at")]
    for setting in server.settings.items():
        given += ["--storage-option", "=".join(setting)]
    if format_ == "iceberg":
        given += ["--catalog", f"sqlite:///{tmp_path}/catalog.db"]
    batches = ["--max-offsets-per-trigger", "10", "--target-lag", "0", "--keep-versions", "0"]
    assert run(["follow", *given, "--once", *batches]) == 0
    assert run(["follow", *given, "--check"]) == 0
    put(path, 30, 40)
    asked = {"table": url, "columns": "body", **server.settings}
    if format_ == "iceberg":
        asked |= {"table": "mqlake.table", "catalog": f"sqlite:///{tmp_path}/catalog.db"}
    assert bodies(union_rows(asked)) == list(range(40))
    said = capsys.readouterr()
    assert KEY not in said.out + said.err


@pytest.mark.parametrize("cloud", ["azure", "google"])
def test_an_archive(cloud: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(cloud)
    golden, url = store("rmq5-clean"), f"{server.url}/archive"
    target = open_target(url, server.settings)
    report = archive(golden.path, target)
    assert check(target.directory, LocalEngine(2)).damage == []
    closed = [row for row in expected_rows(golden) if row["physicalOffset"] < report.max_offset]
    assert [comparable(row) for row in batch_rows(url, **server.settings)] == closed
    target.remove("manifest.json")
    target.remove("manifest.json")  # fine if it is gone
    with pytest.raises(StoreError, match=r"no commitlog/ in it"):
        batch_rows(f"{server.url}/nothing", **server.settings)
