"""`mqlake kafka` on directories that real Kafka wrote, beside what Kafka itself said of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.cli.app import KAFKA_COMMANDS
from mqlake.storage.owner_lock import OwnerLock
from tests import golden_kafka
from tests.cli.conftest import Mqlake
from tests.golden_kafka import GoldenPartition

CHANGING = ("rebuild-index", "recover")
HEAVY = ("numpy", "numba", "rich", "pyarrow", "pyspark", "py4j")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A copy of the log directory that may be changed."""
    return Path(shutil.copytree(golden_kafka.log_directory(), tmp_path / "logs"))


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def digests(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize("name", ["", *KAFKA_COMMANDS])
def test_help(mqlake: Mqlake, name: str) -> None:
    ran = mqlake("kafka", *name.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: mqlake kafka {name}")


@pytest.mark.parametrize("name", KAFKA_COMMANDS)
def test_examples_parse(mqlake: Mqlake, name: str) -> None:
    for example in KAFKA_COMMANDS[name].EXAMPLES:
        assert example in mqlake("kafka", name, "--help").out
        program, group, command, _, *options = example.split()
        assert (program, group, command) == ("mqlake", "kafka", name)
        ran = mqlake("kafka", command, "nowhere", *options)
        assert ran == (2, "", "mqlake: nowhere: the file or directory does not exist\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["kafka"], "Missing command (see mqlake kafka --help)"),
        (["kafka", "verify"], "Missing argument 'PATH' (see mqlake kafka verify --help)"),
        (["kafka", "lookup", "a"], "name what to find: --offset N or --time MS"),
        (
            ["kafka", "lookup", "a", "--offset", "1", "--time", "1"],
            "name what to find: --offset N or --time MS",
        ),
        (["kafka", "dump", "a", "--isolation", "none"], "Invalid value for '--isolation'"),
        (["kafka", "recover", "a", "--index-interval-bytes", "-1"], "Invalid value for '--index-"),
    ],
)
def test_bad_usage_is_one_line(mqlake: Mqlake, arguments: list[str], reason: str) -> None:
    ran = mqlake(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"mqlake: {reason}")


@pytest.mark.parametrize("name", KAFKA_COMMANDS)
def test_a_directory_that_is_not_a_log_is_an_error(
    mqlake: Mqlake, tmp_path: Path, name: str
) -> None:
    options = ["--offset", "0"] if name == "lookup" else []
    ran = mqlake("kafka", name, tmp_path, *options)
    reason = "not a Kafka log: there are neither segments nor partitions in it"
    assert ran == (2, "", f"mqlake: {tmp_path}: {reason}\n")
    file = tmp_path / "file.txt"
    file.touch()
    ran = mqlake("kafka", name, file, *options)
    assert ran.err == f"mqlake: {file}: not the file of a segment, such as {0:020d}.log\n"


def test_inspect_a_log_directory(mqlake: Mqlake) -> None:
    summary = mqlake("kafka", "inspect", golden_kafka.log_directory(), "--json").json
    assert summary["lastStopWasClean"] is True
    assert summary["damage"] == []
    names = [f"{one['topic']}-{one['partition']}" for one in summary["partitions"]]
    assert set(golden_kafka.partitions()) <= set(names)
    for one, name in zip(summary["partitions"], names, strict=True):
        if name not in golden_kafka.partitions(consumed=True):
            continue
        golden = GoldenPartition(name)
        truth = golden.truth("read_committed.json")
        assert truth["beginningOffset"] == one["logStartOffset"]
        assert truth["highWatermark"] == one["highWatermark"] == one["logEndOffset"]
        assert truth["lastStableOffset"] == one["lastStableOffset"]
        assert [log.stat().st_size for log in golden.logs] == [s["size"] for s in one["segments"]]
        assert one["damage"] == []


def test_inspect_as_text(mqlake: Mqlake, logs: Path) -> None:
    table = mqlake("kafka", "inspect", logs).out
    assert "last stop      clean" in table
    assert ["plain-none", "1", "0", "3,000", "2"] in [
        line.split()[:5] for line in table.splitlines()
    ]
    one = mqlake("kafka", "inspect", logs / "txn-open-0").out
    assert "undecided       from offset 92: an open transaction" in one
    (logs / ".kafka_cleanshutdown").unlink()
    assert "last stop      not clean" in mqlake("kafka", "inspect", logs).out


def test_inspect_shows_what_cannot_be_read(mqlake: Mqlake, logs: Path) -> None:
    (logs / "txn-0" / "leader-epoch-checkpoint").write_text("x")
    ran = mqlake("kafka", "inspect", logs, "--json")
    assert ran.code == 0
    [damage] = [one for partition in ran.json["partitions"] for one in partition["damage"]]
    assert damage["file"] == "leader-epoch-checkpoint"
    (logs / "log-start-offset-checkpoint").write_text("y")
    summary = mqlake("kafka", "inspect", logs, "--json").json
    assert summary["partitions"] == []
    assert "a checkpoint that does not start" in summary["damage"][0]["reason"]


@pytest.mark.parametrize("name", golden_kafka.partitions(consumed=True))
def test_dump_is_what_a_consumer_saw(mqlake: Mqlake, name: str) -> None:
    golden = GoldenPartition(name)
    found = lines(mqlake("kafka", "dump", golden.path, "--json").out)
    assert list(map(golden_kafka.short, found)) == golden.records()
    committed = mqlake("kafka", "dump", golden.path, "--isolation", "read_committed", "--json").out
    truth = golden.truth("read_committed.json")["committedOffsets"]
    assert [record["offset"] for record in lines(committed)] == truth


def test_dump_of_a_log_directory_names_the_partition(mqlake: Mqlake) -> None:
    found = lines(mqlake("kafka", "dump", golden_kafka.log_directory(), "--max", "2", "--json").out)
    names = [f"{record['topic']}-{record['partition']}" for record in found]
    assert names.count("txn-0") == 2
    assert list(found[0])[:3] == ["topic", "partition", "offset"]


def test_dump_a_stretch(mqlake: Mqlake) -> None:
    path = GoldenPartition("txn-0").path
    found = lines(mqlake("kafka", "dump", path, "--offset", "10", "--max", "8", "--json").out)
    assert [record["offset"] for record in found] == [10, 11, 12, 13, 14, 15, 17, 18]
    marked = mqlake("kafka", "dump", path, "--offset", "16", "--max", "1", "--control").out
    assert re.match(r" +16  2026-11-20 [0-9:.]+  \[control]  0x", marked)


def test_dump_one_segment(mqlake: Mqlake) -> None:
    golden = GoldenPartition("seg-none-0")
    found = lines(mqlake("kafka", "dump", golden.logs[3], "--json").out)
    first, following = (int(log.stem) for log in golden.logs[3:5])
    assert [record["offset"] for record in found] == list(range(first, following))


def test_dump_as_text_obeys_no_control_characters(mqlake: Mqlake, tmp_path: Path) -> None:
    from mqlake.formats.kafka.record_batch import NewRecord, encode

    record = NewRecord(1_700_000_000_000, b"\x1b[2J", None, [("\x07", b"bell"), ("n", None)])
    (tmp_path / f"{0:020d}.log").write_bytes(encode(0, [record]))
    out = mqlake("kafka", "dump", tmp_path).out
    assert out.split()[0] == "0"
    assert out.endswith("0x1b5b324a    -  \\x07=bell  n=-\n")


def damage_a_batch(logs: Path, name: str = "plain-none-0") -> Path:
    log = min((logs / name).glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    return log


def test_damage(mqlake: Mqlake, logs: Path) -> None:
    assert mqlake("kafka", "verify", logs, "--json").json["ok"] is True
    whole = lines(mqlake("kafka", "dump", logs / "plain-none-0", "--json").out)
    log = damage_a_batch(logs)
    ran = mqlake("kafka", "verify", logs, "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    damaged = [segment for partition in ran.json["partitions"] for segment in partition["segments"]]
    reasons = [one["reason"] for segment in damaged for one in segment["damage"]]
    assert any(reason.startswith("checksum") for reason in reasons)
    text = mqlake("kafka", "verify", log)
    assert text.code == 1
    assert "The log is damaged." in text.out
    dumped = mqlake("kafka", "dump", logs / "plain-none-0", "--json")
    assert dumped.code == 1
    assert dumped.err.startswith(f"mqlake: plain-none-0/{log.name}, byte ")
    found = lines(dumped.out)
    assert 0 < len(whole) - len(found) < 100
    assert all(record in whole for record in found)


def test_verify_deep(mqlake: Mqlake) -> None:
    for path in (golden_kafka.log_directory(), GoldenPartition("c-zstd-0").logs[0]):
        report = mqlake("kafka", "verify", path, "--deep", "--json").json
        assert report["ok"] is True
        assert report["records"] > 500
    assert "No damage." in mqlake("kafka", "verify", path).out


@pytest.mark.parametrize("name", golden_kafka.partitions(consumed=True))
def test_lookup(mqlake: Mqlake, name: str) -> None:
    golden = GoldenPartition(name)
    times = golden.truth("offsets_for_times.json")
    for case in [case for case in times if case["timestamp"] >= 0][::15]:
        for isolation in ("read_uncommitted", "read_committed"):
            options = ("--time", case["timestamp"], "--isolation", isolation)
            ran = mqlake("kafka", "lookup", golden.path, *options, "--json")
            found = [[one["offset"], one["timestamp"]] for one in ran.json["found"]]
            assert found == ([] if case[isolation] is None else [case[isolation]])
            assert ran.code == (0 if found else 1)
    batches = golden.truth("batches.json")
    for segment in batches[:2]:
        for batch in segment["batches"][::40]:
            options = ("--offset", max(batch["baseOffset"], 333 if "delete" in name else 0))
            found = mqlake("kafka", "lookup", golden.path, *options, "--json").json["found"]
            if batch["lastOffset"] >= options[1] and batch["count"]:
                expected = (batch["position"], batch["sizeInBytes"], batch["baseOffset"])
                assert expected == tuple(found[0][n] for n in ("position", "size", "baseOffset"))
                assert found[0]["file"].endswith(f"{segment['segment']}.log")


def test_lookup_as_text(mqlake: Mqlake) -> None:
    one = mqlake("kafka", "lookup", GoldenPartition("txn-0").path, "--offset", 5).out
    assert "its offsets   3 to 10" in one
    several = mqlake("kafka", "lookup", golden_kafka.log_directory(), "--time", 0)
    assert "plain-none-1" in several.out
    assert several.out.startswith("Found\n")
    nothing = mqlake("kafka", "lookup", GoldenPartition("txn-0").path, "--offset", 1 << 40)
    assert nothing == (1, "Nothing matched.\n", "")


@pytest.mark.parametrize("command", CHANGING)
@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_indexes_are_kafkas(mqlake: Mqlake, tmp_path: Path, command: str, name: str) -> None:
    golden = GoldenPartition(name)
    path = golden.copy(tmp_path / name)
    for kind in ("index", "timeindex", "txnindex", "snapshot"):
        for file in path.glob(f"*.{kind}"):
            file.unlink()
    logs_before = {log.name: log.read_bytes() for log in path.glob("*.log")}
    ran = mqlake("kafka", command, path, "--index-interval-bytes", golden.index_interval, "--json")
    assert (ran.code, ran.err) == (0, "")
    for log, data in logs_before.items():
        assert (path / log).read_bytes() == data
    for expected in golden.recovered().iterdir():
        if expected.suffix in (".index", ".timeindex", ".txnindex"):
            written = path / expected.name
            if expected.stat().st_size or written.exists():
                assert expected.read_bytes() == written.read_bytes(), expected.name
    assert mqlake("kafka", "verify", path).code == 0


@pytest.mark.parametrize("command", CHANGING)
def test_one_segment(mqlake: Mqlake, logs: Path, command: str) -> None:
    path = logs / "txn-0"
    log = max(path.glob("*.log"))
    before = digests(path)
    for suffix in (".index", ".timeindex", ".txnindex"):
        log.with_suffix(suffix).unlink()
    interval = GoldenPartition("txn-0").index_interval
    assert mqlake("kafka", command, log, "--index-interval-bytes", interval).code == 0
    assert digests(path) == before


def test_rebuild_index_never_cuts(mqlake: Mqlake, logs: Path) -> None:
    log = damage_a_batch(logs)
    data = log.read_bytes()
    ran = mqlake("kafka", "rebuild-index", logs, "--json")
    assert ran.code == 1
    damaged = [
        segment
        for partition in ran.json["partitions"]
        for segment in partition["segments"]
        if segment["damage"]
    ]
    assert [segment["file"] for segment in damaged] == [f"plain-none-0/{log.name}"]
    assert damaged[0]["indexed"] == damaged[0]["damage"][0]["offset"]
    assert log.read_bytes() == data
    assert not list(logs.rglob("*.cleaned"))
    assert "not indexed from there on" in mqlake("kafka", "rebuild-index", log).out


def test_recover_cuts(mqlake: Mqlake, logs: Path) -> None:
    log = damage_a_batch(logs)
    clean = mqlake("kafka", "recover", logs, "--json").json["partitions"]
    assert not any(one["cut"] for one in clean)
    ran = mqlake("kafka", "recover", logs, "--all", "--json")
    assert ran.code == 0
    [cut] = [one for one in ran.json["partitions"] if one["cut"]]
    assert cut["path"] == str(logs / "plain-none-0")
    assert len(cut["removed"]) == 1
    assert log.stat().st_size == GoldenPartition("plain-none-0").logs[0].stat().st_size - cut["cut"]
    assert (logs / ".kafka_cleanshutdown").exists()
    assert mqlake("kafka", "verify", logs).code == 0
    text = mqlake("kafka", "recover", logs / "plain-none-0").out
    assert "Nothing had to be cut off." in text


def test_recover_from_the_recovery_points_on(mqlake: Mqlake, logs: Path) -> None:
    damage_a_batch(logs)
    (logs / ".kafka_cleanshutdown").unlink()
    points = logs / "recovery-point-offset-checkpoint"
    # The first segment was on the disk, as far as Kafka knows.
    done = mqlake("kafka", "recover", logs, "--json").json["partitions"]
    assert not any(one["cut"] for one in done)
    points.write_text("0\n0\n")
    (logs / ".kafka_cleanshutdown").unlink()
    ran = mqlake("kafka", "recover", logs)
    assert "segment after a cut." in ran.out
    assert (logs / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("command", CHANGING)
@pytest.mark.parametrize("where", ["", "txn-0"])
def test_a_running_broker_keeps_them_away(
    mqlake: Mqlake, logs: Path, command: str, where: str
) -> None:
    (logs / ".lock").touch()
    before = digests(logs)
    with OwnerLock(logs, ".lock"):
        ran = mqlake("kafka", command, logs / where)
    assert ran.code == 2
    assert f"{logs}/.lock: process {os.getpid()} owns" in ran.err
    assert digests(logs) == before


@pytest.mark.parametrize("name", ["inspect", "verify", "dump", "lookup"])
def test_reading_changes_nothing(mqlake: Mqlake, logs: Path, name: str) -> None:
    before = digests(logs)
    mqlake("kafka", name, logs, *(["--offset", "0"] if name == "lookup" else []))
    assert digests(logs) == before


def members(value: Any) -> Iterator[str]:
    """Yield the member names of a JSON value."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from members(member)
    elif isinstance(value, list):
        for member in value:
            yield from members(member)


@pytest.mark.parametrize("name", KAFKA_COMMANDS)
def test_json_members_are_documented(mqlake: Mqlake, logs: Path, name: str) -> None:
    damage_a_batch(logs)
    options = {"lookup": ["--offset", "0"], "dump": ["--max", "1"]}.get(name, [])
    ran = mqlake("kafka", name, logs, *options, "--json")
    found = {member for line in lines(ran.out) for member in members(line)}
    documented = set(re.findall(r"`(\w+)`", KAFKA_COMMANDS[name].__doc__ or ""))
    assert found - documented == set()
    assert len(found) >= 4


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["verify", "--help"], ["dump", "{}", "--json"], ["lookup", "{}", "--offset", "3"]],
)
def test_small_commands_import_nothing_heavy(arguments: list[str]) -> None:
    path = str(GoldenPartition("txn-0").path)
    program = (
        "import sys; from mqlake.cli.app import run; code = run(sys.argv[1:]); "
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    words = ["kafka", *(word.format(path) for word in arguments)]
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert ran.stderr.strip() == ("['rich']" if "lookup" in words else "[]")
