"""A store that is being written: a reader sees one moment, and the next one when asked to."""

from __future__ import annotations

from pathlib import Path

from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader
from tests.golden import store
from tests.store.make_store import START, StoreMaker, write


def test_refresh_sees_what_was_appended() -> None:
    maker = StoreMaker()
    files: dict[str, bytes] = {}
    directory = MemoryDirectory(files, lock_holder=1)
    maker.append(KEYS="k0")
    files.update({**maker.files(), "abort": b"1", "lock": b""})
    with StoreReader.open(directory) as reader:
        for count in range(1, 120):
            assert reader.max_offset == maker.end
            assert reader.queue("T", 0) == (0, count)
            assert len(reader.get("T", 0, 0, 1000).records) == count
            assert len(reader.by_key("T", f"k{count - 1}").records) == 1
            maker.append(time=START + count, KEYS=f"k{count}")
            files.update(maker.files())
            assert reader.queue("T", 0) == (0, count)
            reader.refresh()


def test_entries_ahead_of_the_log_are_no_messages_yet() -> None:
    """Queue entries that a broker adds after the log's end was found do not count."""
    maker = StoreMaker()
    for number in range(10):
        maker.append(time=START + number)
    files = maker.files()
    later = StoreMaker()
    for number in range(20):
        later.append(time=START + number)
    queue_files = {path: data for path, data in later.files().items() if "consumequeue" in path}
    with StoreReader.open(MemoryDirectory({**files, **queue_files})) as reader:
        assert reader.queue("T", 0) == (0, 10)
        assert reader.get("T", 0, 10).status == "OFFSET_OVERFLOW_ONE"


def test_deleted_segments_stay_readable_until_refresh(tmp_path: Path) -> None:
    maker = StoreMaker()
    for number in range(200):
        maker.append(time=START + number)
    write(maker.files(), tmp_path)
    with StoreReader.open(tmp_path) as reader:
        assert len(reader.get("T", 0, 0, 1000).records) == 200
        (tmp_path / "commitlog" / f"{0:020d}").unlink()
        assert len(reader.get("T", 0, 0, 1000).records) == 200
        reader.refresh()
        left = [m for m in maker.messages if m.physical_offset >= 4096]
        assert reader.queue("T", 0) == (left[0].queue_offset, 200)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = store("rmq5-killed").copy(tmp_path / "store")
    before = {file: file.stat() for file in path.rglob("*")}
    with StoreReader.open(path) as reader:
        reader.inspect()
        reader.get("TopicA", 0, 0)
        reader.by_key("TopicA", "dup-3")
    after = {file: file.stat() for file in path.rglob("*")}
    assert after.keys() == before.keys()
    for file, status in before.items():
        assert after[file].st_mtime_ns == status.st_mtime_ns
        assert after[file].st_size == status.st_size
