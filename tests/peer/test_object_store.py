"""Stores and archives on a server of S3: the same rows, and keys from the usual places."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.cli.app import run
from mqlake.errors import StoreError
from mqlake.jobs.archive.check import check
from mqlake.jobs.archive.job import archive
from mqlake.jobs.local import LocalEngine
from mqlake.storage.object_target import ArrowTarget, open_target
from mqlake.storage.remote.arrow_fs import open_url
from mqlake.store.archive.opening import open_place
from mqlake.store.reader import StoreReader
from tests.golden import GoldenStore, store
from tests.jobs.archive.test_archive import files_of
from tests.peer.python_build import PythonMissingError
from tests.peer.s3_server import ACCESS, BUCKET, REGION, SECRET, S3Server
from tests.query.store.growing import Engine, GrowingStore
from tests.query.store.rows import batch_rows, options_of
from tests.query.store.truth import comparable, expected_rows

pytestmark = pytest.mark.peer

RELEASES = ("rmq49-clean", "rmq533-clean", "rmq5-clean")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        started = S3Server(tmp_path_factory.mktemp("s3"))
    except PythonMissingError as reason:
        pytest.skip(f"without a server of S3: {reason}")
    yield started
    started.close()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """Return a place of this test's own."""
    return f"s3a://{BUCKET}/{request.node.name.replace('[', '-').rstrip(']')}"


def without(path: Path, end: int) -> None:
    """Remove segments that are archived, as retention does."""
    for segment in sorted((path / "commitlog").iterdir()):
        if int(segment.name) < end:
            segment.unlink()


def put_files(place: str, golden: GoldenStore, server: S3Server) -> None:
    """Copy a store's files as they are."""
    target = open_target(place, server.settings)
    assert isinstance(target, ArrowTarget)
    for path in golden.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            target.put(path.relative_to(golden.path).as_posix(), len(data), [data])


@pytest.mark.parametrize("name", RELEASES)
def test_the_same_rows(name: str, server: S3Server, url: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")
    target = open_target(url, server.settings)
    report = archive(path, target)
    assert check(target.directory, LocalEngine(4)).damage == []
    expected = expected_rows(golden)
    closed = [row for row in expected if row["physicalOffset"] < report.max_offset]
    settings: dict[str, Any] = {**server.settings, "minPartitions": 2}
    assert [comparable(row) for row in batch_rows(url, **settings)] == closed

    without(path, report.max_offset)
    both = {**settings, "archive": url}
    assert [comparable(row) for row in batch_rows(path, **both)] == expected


def test_a_plain_store_directory(server: S3Server, url: str) -> None:
    golden = store("rmq5-clean")
    put_files(url, golden, server)
    rows = batch_rows(url, **server.settings)
    assert [comparable(row) for row in rows] == expected_rows(golden)
    with (
        StoreReader.open(open_url(url, server.settings)) as remote,
        StoreReader.open(golden.path) as local,
    ):
        assert remote.inspect().topics == local.inspect().topics
        for query in golden.queries()["queryMessage"][:40]:
            asked = query["topic"], query["key"]
            assert remote.by_key(*asked) == local.by_key(*asked)


def test_the_command_and_a_key(
    server: S3Server, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store("rmq5-clean").path
    settings = [word for pair in server.settings.items() for word in ("--set", "=".join(pair))]
    assert run(["archive", str(path), "--to", url, "--verify", "--json", *settings]) == 0
    assert '"damage":[]' in capsys.readouterr().out
    question = ["--topic", "TopicB", "--key", "键-16", "--json"]
    run(["query", str(path), *question])
    expected = capsys.readouterr().out
    assert run(["query", url, *question, *settings]) == 0
    assert capsys.readouterr().out == expected


def test_a_stream_while_segments_are_archived_and_removed(
    server: S3Server, url: str, tmp_path: Path
) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(60)
    target = open_target(url, server.settings)
    archive(growing.path, target)
    asked = {"startingOffsets": "earliest", "columns": "keys,physicalOffset", **server.settings}
    query = Engine(options_of(growing.path, streaming=True, archive=url, **asked))
    for _ in range(4):
        growing.grow(30)
        end = archive(growing.path, target).max_offset
        without(growing.path, end)
        query.trigger()
        query.restart()
    query.run_all()
    assert query.keys == growing.keys
    directory = open_place(str(growing.path), url, server.settings)
    assert files_of(directory)


_OPEN = """
import sys
from mqlake.storage.remote.arrow_fs import open_url
print(open_url(sys.argv[1]).names(""))
"""


@pytest.mark.parametrize("place", ["environment", "profile", "hadoop", "spark", "url"])
def test_keys_come_from_the_usual_places(
    place: str, server: S3Server, url: str, tmp_path: Path
) -> None:
    open_target(url, server.settings).put("found", 1, [b"x"])
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    servers = {"AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": REGION}
    environment = {
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    if place == "environment":
        environment |= keys | servers
    elif place == "profile":
        (tmp_path / ".aws").mkdir()
        lines = [f"{name.lower()} = {value}\n" for name, value in keys.items()]
        (tmp_path / ".aws" / "credentials").write_text("[default]\n" + "".join(lines))
        environment |= servers
    elif place == "hadoop":
        properties = (
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in server.settings.items()
        )
        text = f"<configuration>{''.join(properties)}</configuration>"
        (tmp_path / "core-site.xml").write_text(text)
        environment["HADOOP_CONF_DIR"] = str(tmp_path)
    elif place == "spark":
        lines = [f"spark.hadoop.{name}   {value}\n" for name, value in server.settings.items()]
        (tmp_path / "spark-defaults.conf").write_text("".join(lines))
        environment["SPARK_CONF_DIR"] = str(tmp_path)
    else:
        environment |= keys
        host = server.endpoint.removeprefix("http://")
        url += f"?endpoint_override={host}&scheme=http&region={REGION}"
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, url],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "['found']\n", done.stderr


def test_wrong_keys_and_a_missing_bucket_are_one_line(server: S3Server) -> None:
    wrong = {**server.settings, "fs.s3a.secret.key": "wrong"}
    with pytest.raises(
        StoreError, match=rf"s3a://{BUCKET}/x/manifest.json: .*ACCESS_DENIED"
    ) as caught:
        batch_rows(f"s3a://{BUCKET}/x", **wrong)
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="no commitlog/ in it"):
        batch_rows("s3a://nothing/x", **server.settings)
    with pytest.raises(StoreError, match=r"fs\.s3a\.secret\.key is missing"):
        open_url(f"s3a://{BUCKET}/x", {"fs.s3a.access.key": "x"})
