"""`mqlake retention --plan`: what it says goes, and that nothing does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Mqlake
from tests.golden import SEGMENT_SIZE, store

HOUR = 60 * 60 * 1000
FOUR = 1_795_233_600_000


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The clean store, its segments written an hour after each other, up to FOUR - 72 h."""
    path = store("rmq5-clean").copy(tmp_path / "store")
    segments = sorted((path / "commitlog").iterdir())
    for number, segment in enumerate(segments):
        written = FOUR - (72 + len(segments) - 1 - number) * HOUR
        os.utime(segment, ns=(written * 1_000_000,) * 2)
    return path


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_files_older_than_72_hours_are_planned_for_4_am(mqlake: Mqlake, copied: Path) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    common = ("retention", copied, "--plan", "--json", "--disk-used", 50)
    early = mqlake(*common, "--at", FOUR - 2 * HOUR).json
    assert (early["files"], early["isTime"], early["nextTime"]) == ([], False, FOUR)
    report = mqlake(*common, "--at", FOUR).json
    log = [file for file in report["files"] if file["reason"] != "log"]
    segments = sorted((copied / "commitlog").iterdir())
    assert [file["file"] for file in log] == [f"commitlog/{path.name}" for path in segments[:-1]]
    assert {file["reason"] for file in log} == {"expired"}
    assert report["newMinOffset"] == int(segments[-1].name)
    assert report["bytes"] == sum(
        (copied / file["file"]).stat().st_size for file in report["files"]
    )
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


def test_queue_and_index_files_go_with_the_log(mqlake: Mqlake, copied: Path) -> None:
    limit = f"maxCommitLogBytes={3 * SEGMENT_SIZE}"
    command = ("retention", copied, "--plan", "--disk-used", 50, "--at", FOUR - 5 * HOUR)
    report = mqlake(*command, "--set", limit, "--json").json
    golden = store("rmq5-clean")
    start = report["newMinOffset"]
    assert start == 3 * SEGMENT_SIZE
    index = [file["file"] for file in report["files"] if file["file"].startswith("index/")]
    headers = mqlake("inspect", golden.path, "--json").json["index"]
    wanted = [f"index/{file['name']}" for file in headers if file["endPhysicalOffset"] < start]
    assert index == wanted[: len(headers) - 1]
    assert wanted
    unread = {(group["group"], group["topic"]): group["messages"] for group in report["unread"]}
    lost = [
        message
        for message in golden.messages()
        if message["topic"] == "TopicA" and message["physicalOffset"] < start
    ]
    read = {0: 163, 1: 210, 2: 217, 3: 218}
    count = sum(message["queueOffset"] >= read[message["queueId"]] for message in lost)
    assert unread.get(("G_part", "TopicA"), 0) == count


def test_text(mqlake: Mqlake, copied: Path) -> None:
    ran = mqlake("retention", copied, "--plan", "--disk-used", 92, "--at", FOUR - 5 * HOUR)
    assert (ran.code, ran.err) == (0, "")
    assert "the disk is too full" in ran.out
    assert "92 % full: no messages are accepted above 90 %" in ran.out
    assert "G_part" in ran.out
    quiet = mqlake("retention", copied, "--plan", "--disk-used", 10, "--at", FOUR - 5 * HOUR)
    assert ["would", "be", "removed", "nothing"] in [
        line.split() for line in quiet.out.splitlines()
    ]


def test_settings_come_from_the_file_and_then_from_options(
    mqlake: Mqlake, copied: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=broker-a\nfileReservedTime=79\ndeleteWhen=09\n")
    command = ("retention", copied, "--plan", "--json", "--disk-used", 10, "-c", conf)
    at = ("--at", FOUR + 5 * HOUR)
    report = mqlake(*command, *at).json
    assert (report["fileReservedTime"], report["deleteWhen"], report["isTime"]) == (79, "09", True)
    few = len(report["files"])
    assert len(mqlake(*command, *at, "--set", "fileReservedTime=1").json["files"]) > few > 0


def test_settings_that_a_broker_changed_are_overridden_by_the_file(
    mqlake: Mqlake, copied: Path, tmp_path: Path
) -> None:
    (copied / "config" / "broker.properties").write_text("fileReservedTime=1\ndeleteWhen=09\n")
    conf = tmp_path / "broker.conf"
    command = ("retention", copied, "--plan", "--json", "-c", conf)
    for name in ("deleteWhen", "delete_when"):
        conf.write_text(f"{name}=10\n")
        report = mqlake(*command).json
        assert (report["fileReservedTime"], report["deleteWhen"]) == (1, "10")
        assert mqlake(*command, "--set", "deleteWhen=11").json["deleteWhen"] == "11"


def test_only_settings_that_a_broker_reads_from_its_store_count(
    mqlake: Mqlake, copied: Path
) -> None:
    command = ("retention", copied, "--plan", "--json", "--disk-used", 10)
    before = mqlake(*command).json
    text = "file_reserved_time=79\nmappedFileSizeCommitLog=1024\nstorePathRootDir=/elsewhere\n"
    (copied / "config" / "broker.properties").write_text(text)
    assert mqlake(*command).json["fileReservedTime"] == 79
    text = "deleteWhen=04\nmappedFileSizeCommitLog=soon\n"
    (copied / "config" / "broker.properties").write_text(text)
    assert mqlake(*command).json["files"] == before["files"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "add --plan"),
        (("--plan", "--set", "fileReservedTime"), "NAME=VALUE"),
        (("--plan", "--set", "fileReservedTme=3"), "did you mean fileReservedTime?"),
        (("--plan", "--set", "fileReservedTime=soon"), "fileReservedTime"),
        (("--plan", "--set", "deleteWhen=26"), "deleteWhen"),
        (("--plan", "-c", "no-such.conf"), "no-such.conf: No such file"),
    ],
)
def test_wrong_usage(mqlake: Mqlake, options: tuple[str, ...], said: str) -> None:
    ran = mqlake("retention", store("rmq5-clean").path, *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", ["rmq5-killed", "rmq49-clean", "rmq5-default"])
def test_other_stores(mqlake: Mqlake, name: str) -> None:
    ran = mqlake("retention", store(name).path, "--plan", "--json", "--disk-used", 99)
    assert ran.code == 0
    assert ran.json["newMinOffset"] <= ran.json["maxOffset"]


def test_a_directory_that_is_not_a_store_is_an_error(mqlake: Mqlake, tmp_path: Path) -> None:
    for options in ((), ("--disk-used", 3)):
        ran = mqlake("retention", tmp_path / "none", "--plan", *options)
        assert (ran.code, ran.err) == (
            2,
            f"mqlake: {tmp_path}/none: the directory does not exist\n",
        )
