"""`mqlake rebuild`, `verify` and `export` on the golden stores."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from tests.cli.conftest import Mqlake
from tests.golden import GoldenStore, store

LOCAL = ("--engine", "local")
DIALECTS = {"rmq5-clean": "5.5", "rmq533-clean": "5.3", "rmq49-clean": "4.9"}


def digests(root: Path) -> dict[str, str]:
    """Return the SHA-256 of each derived file by its path; index files are numbered instead."""
    return dict(_named((str(path.relative_to(root)), _digest(path)) for path in _files(root)))


def rocketmq_digests(golden: GoldenStore) -> dict[str, str]:
    """Return the same for the files that RocketMQ wrote, as they were recorded."""
    files = sorted((file["path"], file["sha256"]) for file in golden.files())
    return dict(_named(files))


def _named(files: Any) -> Iterator[tuple[str, str]]:
    count = 0
    for path, digest in files:
        if path.startswith("consumequeue/"):
            yield path, digest
        elif path.startswith("index/"):
            yield f"index {count}", digest
            count += 1


def _files(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*")) if path.is_file()]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", DIALECTS)
def test_rebuilt_files_equal_rocketmqs(mqlake: Mqlake, tmp_path: Path, name: str) -> None:
    golden, out = store(name), tmp_path / "out"
    ran = mqlake("rebuild", golden.path, "--out", out, *LOCAL, "--json")
    report = ran.json
    assert (ran.code, ran.err) == (0, "")
    assert digests(out) == rocketmq_digests(golden)
    assert (out / "checkpoint").stat().st_size == 4096
    assert report["records"] == golden.walk()["records"]
    assert report["logEnd"] == golden.walk()["endOffset"]
    assert report["settings"]["dialect"] == DIALECTS[name]
    assert report["damage"] == []
    assert report["seconds"] > 0


def test_rebuild_in_place_keeps_the_sizes(mqlake: Mqlake, tmp_path: Path) -> None:
    copy = store("rmq5-clean").copy(tmp_path / "store")
    before = digests(copy)
    ran = mqlake("rebuild", copy, *LOCAL)
    assert ran.code == 0
    assert digests(copy) == before
    assert [line.split()[0] for line in ran.out.splitlines()][:3] == ["read", "records", "queues"]
    assert sorted(path.name for path in copy.iterdir() if path.name.startswith(".")) == []


def test_rebuild_with_other_sizes(mqlake: Mqlake, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = mqlake(
        *("rebuild", store("rmq5-clean").path, "--out", out, *LOCAL, "--json"),
        *("--queue-file-size", 400, "--hash-slots", 10, "--max-index", 100, "--dialect", "4.9"),
    )
    report = ran.json
    assert report["settings"]["queueFileSize"] == 400
    assert {path.stat().st_size for path in _files(out / "consumequeue")} == {400}
    assert {path.stat().st_size for path in _files(out / "index")} == {40 + 10 * 4 + 100 * 20}
    assert report["indexFiles"] == len(_files(out / "index")) == -(-report["indexEntries"] // 99)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--out", "{full}"], "not empty"),
        (["--master", "local"], "--master needs --engine spark"),
        (["--hash-slots", "4000000000", "--out", "{new}"], "index"),
    ],
)
def test_rebuild_refused(mqlake: Mqlake, tmp_path: Path, options: list[str], reason: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    places = {"full": tmp_path / "full", "new": tmp_path / "new"}
    arguments = [option.format(**places) for option in options]
    ran = mqlake("rebuild", store("rmq5-clean").path, *LOCAL, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", [*DIALECTS, "rmq5-killed"])
def test_verify_finds_no_damage_in_whole_stores(mqlake: Mqlake, name: str) -> None:
    golden = store(name)
    ran = mqlake("verify", golden.path, *LOCAL, "--json")
    report = ran.json
    assert (ran.code, ran.err) == (0, "")
    assert (report["ok"], report["damage"], report["damagedBodies"]) == (True, [], 0)
    assert report["records"] == len(golden.messages())
    dispatched = sum(message["sysFlag"] & 12 in (0, 8) for message in golden.messages())
    assert report["queueEntries"]["good"] == dispatched
    said = mqlake("verify", golden.path, *LOCAL)
    assert (said.code, said.out.splitlines()[-1]) == (0, "No damage.")


def test_verify_names_what_is_damaged(mqlake: Mqlake, tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    copy = golden.copy(tmp_path / "store")
    message = next(m for m in golden.messages() if m["topic"] == "TopicB" and m["bodyLength"] > 50)
    segment = copy / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    body_at = message["physicalOffset"] + 88
    data[body_at] ^= 1
    segment.write_bytes(data)
    ran = mqlake("verify", copy, *LOCAL, "--json")
    report = ran.json
    assert ran.code == 1
    assert (report["ok"], report["damagedBodies"]) == (False, 1)
    damaged = [(damage["file"], damage["offset"], damage["bytes"]) for damage in report["damage"]]
    expected = (f"commitlog/{0:020d}", message["physicalOffset"], message["size"])
    assert damaged == [expected]
    said = mqlake("verify", copy, *LOCAL)
    assert said.code == 1
    assert f"{message['physicalOffset']:,}" in said.out
    assert said.out.splitlines()[-1] == "The store is damaged."


def test_verify_finds_a_wrong_queue_entry(mqlake: Mqlake, tmp_path: Path) -> None:
    copy = store("rmq5-clean").copy(tmp_path / "store")
    file = copy / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[5 * 20 + 19] ^= 1  # the tags code of queue offset 5
    file.write_bytes(data)
    ran = mqlake("verify", copy, *LOCAL, "--json")
    assert ran.code == 1
    assert ran.json["queueEntries"]["wrong"]["count"] == 1
    (damage,) = ran.json["damage"]
    assert (damage["file"], damage["offset"]) == (f"consumequeue/TopicA/0/{0:020d}", 100)


def test_exported_rows_equal_what_java_read(mqlake: Mqlake, tmp_path: Path) -> None:
    golden, out = store("rmq5-clean"), tmp_path / "out"
    ran = mqlake("export", golden.path, "--out", out, *LOCAL, "--no-decompress", "--json")
    assert (ran.code, ran.err) == (0, "")
    rows = pyarrow.dataset.dataset(out).to_table().sort_by("physicalOffset").to_pylist()
    truth = golden.messages()
    assert ran.json["messages"] == len(rows) == len(truth)
    for row, message in zip(rows, truth, strict=True):
        assert row["physicalOffset"] == message["physicalOffset"]
        assert row["storeTimestamp"].timestamp() * 1000 == pytest.approx(message["storeTimestamp"])
        assert dict(row["properties"]) == message["properties"]
        assert hashlib.sha1(row["body"]).hexdigest() == message["bodySha1"]
        assert row["msgId"] == message["offsetMsgId"]


def test_export_and_query_have_the_same_names(mqlake: Mqlake, tmp_path: Path) -> None:
    golden, out = store("rmq5-clean"), tmp_path / "out"
    mqlake("export", golden.path, "--out", out, *LOCAL, "--topic", "TopicA")
    (row,) = pyarrow.dataset.dataset(out).head(1).to_pylist()
    (message,) = mqlake("query", golden.path, "--id", row["msgId"], "--json").json["messages"]
    assert set(row) == {*message, "tags", "keys"}
    assert base64.b64decode(message["body"]) == row["body"]
    same = [name for name in message if isinstance(message[name], int) and "stamp" not in name]
    assert [row[name] for name in same] == [message[name] for name in same]


def test_export_filters(mqlake: Mqlake, tmp_path: Path) -> None:
    golden, out = store("rmq5-clean"), tmp_path / "out"
    begin, end = 1795206740000, 1795206790000
    ran = mqlake(
        *("export", golden.path, "--out", out, *LOCAL, "--topic", "TopicA", "--topic", "TopicB"),
        *("--tag", "Aa", "--begin", begin, "--end", end),
    )
    rows = pyarrow.dataset.dataset(out).to_table().to_pylist()
    expected = [
        message["physicalOffset"]
        for message in golden.messages()
        if message["topic"] in ("TopicA", "TopicB")
        and message["properties"].get("TAGS") == "Aa"
        and begin <= message["storeTimestamp"] <= end
    ]
    assert expected
    assert sorted(row["physicalOffset"] for row in rows) == expected
    shown = dict(line.rsplit(maxsplit=1) for line in ran.out.splitlines() if line.strip())
    assert shown["messages"] == f"{len(rows):,}"
    assert shown["records read"] == f"{len(golden.messages()):,}"


def test_progress_goes_to_stderr_only(mqlake: Mqlake) -> None:
    ran = mqlake("verify", store("rmq5-clean").path, *LOCAL, "--progress", "--json")
    assert ran.json["ok"]
    steps = [line.rpartition(": ") for line in ran.err.splitlines() if " of " in line]
    done = [title for title, _, count in steps if len(set(count.split(" of "))) == 1]
    assert done[:2] == ["index files", "records and their entries"]
    assert mqlake("verify", store("rmq5-clean").path, *LOCAL, "--json").err == ""


def test_without_pyspark_the_other_engine_is_named(
    mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    ran = mqlake("verify", store("rmq5-clean").path)
    assert (ran.code, ran.out) == (2, "")
    assert "--engine local" in ran.err
    assert ran.err.count("\n") == 1


def test_without_java_the_other_engine_is_named(
    mqlake: Mqlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("mqlake.spark.java.COMMON_DIRECTORIES", ())
    ran = mqlake("verify", store("rmq5-clean").path)
    assert (ran.code, ran.out) == (2, "")
    assert "Java" in ran.err
    assert "--engine local" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.spark
def test_spark_is_the_engine_without_a_word(mqlake: Mqlake, tmp_path: Path) -> None:
    from tests.spark.shared_session import SHARED

    SHARED.close()  # a process has one session at a time
    golden, out = store("rmq5-clean"), tmp_path / "out"
    ran = mqlake("rebuild", golden.path, "--out", out, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["records"] == golden.walk()["records"]
    assert digests(out) == rocketmq_digests(golden)
