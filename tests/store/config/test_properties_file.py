"""Changed settings are kept; only their lines change; a crash leaves the old ones or the new."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile
from mqlake.store.config import properties_file
from mqlake.store.config.properties_file import PATH, PropertiesFile, edited, read_changed
from mqlake.store.settings import parse_properties
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Found, ValueKept, ValueSet, require
from tests.crash.simulator import Plan, Simulator
from tests.crash.trace import Note

FILE = """\
# who we are
brokerName = broker-a
! old = 1

fileReservedTime= 48\r
unknownToUs=kept as it is
  deleteWhen=04
fileReservedTime=72
max_message_size=7
"""


def test_only_the_lines_of_what_changed_are_changed() -> None:
    values = {"fileReservedTime": "5", "maxMessageSize": "9", "traceOn": "false"}
    assert (
        edited(FILE, BrokerSettings, values)
        == """\
# who we are
brokerName = broker-a
! old = 1

fileReservedTime=5\r
unknownToUs=kept as it is
  deleteWhen=04
fileReservedTime=5
max_message_size=9
traceOn=false
"""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "traceOn=1\n"),
        ("a=1", "a=1\ntraceOn=1\n"),
        ("#x\f", "#x\f\ntraceOn=1\n"),
        ("a=1\\", "a=1\\\n\ntraceOn=1\n"),
        ("#x\\", "#x\\\ntraceOn=1\n"),
    ],
)
def test_lines_that_are_added(text: str, expected: str) -> None:
    assert edited(text, BrokerSettings, {"traceOn": "1"}) == expected


NAMES = st.sampled_from(["traceOn", "trace_on", "regionId", "maxTopicNums", "x", "#traceOn", "\\"])
BETWEEN = st.sampled_from([" = ", "=", ":", " ", "\t: ", "\\\n  =", ""])
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\\\n", "\\\r\n ", "\f", "\u2028", ""])
LINES = st.lists(st.tuples(NAMES, BETWEEN, st.text(max_size=3), ENDS))
VALUES = st.text(st.characters(codec="utf-8"), max_size=9).map(lambda text: text.strip(BLANKS))
BLANKS = "".join(map(chr, range(33)))


@given(LINES, VALUES)
@example([("\\", "", "", "\n")], "")
def test_what_is_written_is_what_is_read(
    lines: list[tuple[str, str, str, str]], region: str
) -> None:
    text = "".join("".join(line) for line in lines)
    before = parse_properties(text)
    values = {"regionId": region, "traceOn": "false"}
    new = edited(text, BrokerSettings, values)
    after = parse_properties(new)
    for name, value in values.items():
        spellings = {name, {"regionId": "region_id", "traceOn": "trace_on"}[name]}
        assert {after[each] for each in spellings if each in after} == {value}
    # A backslash that is all of a text is an empty name to Java; a line after it ends that.
    ours = ("regionId", "traceOn", "region_id", "trace_on", "")
    assert {name: value for name, value in after.items() if name not in ours} == {
        name: value for name, value in before.items() if name not in ours
    }
    assert edited(new, BrokerSettings, values) == new, "once is enough"


def change(file: PropertiesFile, **values: str) -> None:
    file.change(BrokerSettings, values)


def test_in_a_store(tmp_path: Path) -> None:
    directory = LocalOwnedDirectory(tmp_path)
    assert read_changed(directory, BrokerSettings).values == {}
    change(PropertiesFile.of_store(directory), maxMessageSize="5")
    change(PropertiesFile.of_store(directory), traceOn="false", maxMessageSize="6")
    assert read_changed(directory, BrokerSettings).values == {
        "maxMessageSize": "6",
        "traceOn": "false",
    }
    assert (tmp_path / PATH).read_text().startswith("# Settings that were changed")


def test_in_a_file_that_was_given(tmp_path: Path) -> None:
    path, link = tmp_path / "shared" / "broker.conf", tmp_path / "link.conf"
    path.parent.mkdir()
    path.write_bytes(b"# caf\xe9\nmaxMessageSize=1\n")
    path.chmod(0o600)
    link.symlink_to(path)
    change(PropertiesFile.given(link), maxMessageSize="2")
    assert path.read_bytes() == b"# caf\xe9\nmaxMessageSize=2\n"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["broker.conf"]
    path.unlink()
    with pytest.raises(StoreError, match=r"broker\.conf: the file no longer exists; restore it"):
        change(PropertiesFile.given(link), maxMessageSize="3")


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_nobody_else_can_read_a_private_file_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("maxMessageSize=1\n")
    path.chmod(mode)
    modes: set[int] = set()
    whole = LocalOwnedFile.write

    def write(file: LocalOwnedFile, offset: int, data: bytes) -> None:
        modes.add((tmp_path / "broker.conf.tmp").stat().st_mode & 0o777)
        whole(file, offset, data)

    monkeypatch.setattr(LocalOwnedFile, "write", write)
    change(PropertiesFile.given(path), maxMessageSize="2")
    assert modes == {mode}
    assert path.stat().st_mode & 0o777 == mode


def test_brokers_that_share_a_file_keep_each_others_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("# ours\n")
    is_writing, may_go_on = threading.Event(), threading.Event()
    whole = LocalOwnedFile.sync

    def sync(file: LocalOwnedFile) -> None:
        if not is_writing.is_set():
            is_writing.set()
            may_go_on.wait(60)
        whole(file)

    monkeypatch.setattr(LocalOwnedFile, "sync", sync)
    first, second = PropertiesFile.given(path), PropertiesFile.given(path)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(change, first, maxMessageSize="2")
        assert is_writing.wait(60)
        monkeypatch.setattr(properties_file, "PATIENCE", 0.05)
        with pytest.raises(StoreError, match="another process has been changing this file"):
            change(second, traceOn="false")
        monkeypatch.setattr(properties_file, "PATIENCE", 60)
        waits = threads.submit(change, second, traceOn="false")
        may_go_on.set()
        slow.result()
        waits.result()
    assert path.read_text() == "# ours\nmaxMessageSize=2\ntraceOn=false\n"


class Failing(LocalOwnedDirectory):
    """A directory that refuses one operation."""

    refuses = ""

    def _check(self, operation: str, path: str) -> None:
        if self.refuses == operation:
            raise DiskError(f"{path}: Input/output error", 5)

    def create(self, path: str, size: int) -> Any:
        self._check("create", path)
        return super().create(path, size)

    def replace(self, source: str, target: str) -> None:
        self._check("replace", target)
        super().replace(source, target)

    def sync_directory(self, path: str) -> None:
        if self.refuses == "sync":
            raise SyncError(f"{path}: Input/output error", 5)
        super().sync_directory(path)


@pytest.mark.parametrize("operation", ["create", "replace", "sync"])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_the_disk_refuses_is_not_kept(tmp_path: Path, operation: str, is_first: bool) -> None:
    directory = Failing(tmp_path)
    file = PropertiesFile.of_store(directory)
    (tmp_path / "config").mkdir()
    if not is_first:
        change(file, maxMessageSize="5")
    before = read_changed(LocalDirectory(tmp_path), BrokerSettings).values
    directory.refuses = operation
    with pytest.raises(DiskError, match="Input/output error"):
        change(file, maxMessageSize="6")
    assert read_changed(LocalDirectory(tmp_path), BrokerSettings).values == before
    directory.refuses = ""
    change(file, maxMessageSize="7")
    assert read_changed(directory, BrokerSettings).values == {"maxMessageSize": "7"}


class Changing:
    """A workload of the crash simulator: settings change, and what is kept only grows."""

    name = "changed settings"

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        file = PropertiesFile.of_store(disk)
        for value in range(1, 5):
            disk.record(Note(ValueSet("maxMessageSize", value)))
            change(file, maxMessageSize=str(value), regionId="r" * value)
            disk.record(Note(ValueKept("maxMessageSize", value)))

    def examine(self, disk: RecordedDisk) -> Found:
        found = read_changed(disk, BrokerSettings).values
        value = int(found.get("maxMessageSize", "0"))
        require(len(found.get("regionId", "")) == value, f"half of a change: {found}")
        return Found(frozenset(), frozenset({("maxMessageSize", value)}))


def test_a_crash_leaves_the_old_settings_or_the_new() -> None:
    outcome = Simulator(Changing(), Plan(seed=1, again=1)).run()
    assert not outcome.violated, outcome.violations[0].describe()
    assert outcome.distinct > 20
    assert outcome.crashes.keys() == {"kill", "power cut"}
