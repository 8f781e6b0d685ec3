"""Derived files that are missing, short, holed or full of nonsense: the answers still hold."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.store.reader import StoreReader
from tests.golden import store
from tests.store.brute_force import assert_answers, messages_of

PAGE = 4096
TOPIC = "TopicBatch"

Change = Callable[[Path], None]


def queue_file(path: Path, topic: str = TOPIC, queue_id: int = 0) -> Path:
    return path / "consumequeue" / topic / str(queue_id) / f"{0:020d}"


def index_files(path: Path) -> list[Path]:
    return sorted((path / "index").iterdir())


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as out:
        out.seek(at)
        out.write(data)


def remove(*names: str) -> Change:
    def change(path: Path) -> None:
        for name in names:
            target = path / name
            shutil.rmtree(target) if target.is_dir() else target.unlink()

    return change


def cut_queue(size: int) -> Change:
    return lambda path: open_and_truncate(queue_file(path), size)


def open_and_truncate(file: Path, size: int) -> None:
    with file.open("r+b") as out:
        out.truncate(size)


def lose_queue_page(number: int) -> Change:
    """What a power cut does to a page that was not written back."""
    return lambda path: overwrite(queue_file(path, "TopicOne"), number * PAGE, bytes(PAGE))


def scramble_queue(path: Path) -> None:
    """Entries that point at other queues' messages, behind the log, and nowhere."""
    file = queue_file(path)
    data = bytearray(file.read_bytes())
    other = queue_file(path, "TopicA").read_bytes()
    data[40:120] = other[40:120]
    struct.pack_into(">qiq", data, 300, 1 << 40, 100, 0)
    struct.pack_into(">qiq", data, 500, 17, 100, 0)
    struct.pack_into(">qiq", data, 620, -1, -1, 0)
    file.write_bytes(data)


def swap_queue_files(path: Path) -> None:
    first, second = queue_file(path, TOPIC, 0), queue_file(path, TOPIC, 3)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def remove_index(number: int) -> Change:
    return lambda path: index_files(path)[number].unlink()


def cut_index(path: Path) -> None:
    open_and_truncate(index_files(path)[1], 50_000)


def zero_index_header(path: Path) -> None:
    overwrite(index_files(path)[0], 0, bytes(40))


def overstate_index_count(path: Path) -> None:
    overwrite(index_files(path)[1], 36, (1 << 30).to_bytes(4, "big"))


def name_nonsense(path: Path) -> None:
    """Names that are no queue's, no topic's, no segment's: passed over."""
    for name in ("TopicA/x", "TopicA/99999999999", "TopicA/00", "TopicA/-1", "bad\ttopic/0"):
        (path / "consumequeue" / name).mkdir(parents=True)
    (path / "consumequeue" / "file").touch()
    (path / "consumequeue" / "TopicB" / "0" / "12345").touch()
    (path / "consumequeue" / "TopicB" / "0" / f"{7:020d}").touch()
    (path / "commitlog" / "12345").touch()
    (path / "commitlog" / "readme.txt").touch()
    (path / "index" / "notes").write_bytes(b"x" * 100)
    (path / "index" / "more").mkdir()


WHOLE_LISTS: dict[str, Change] = {
    "no queue files": remove("consumequeue"),
    "no index": remove("index"),
    "no checkpoint": remove("checkpoint"),
    "nothing but the log": remove("consumequeue", "index", "checkpoint", "config"),
    "queue file of half an entry": cut_queue(10),
    "queue file of odd size": cut_queue(333),
    "queue file of no entries": cut_queue(0),
    "queue file of 50 entries": cut_queue(1000),
    "queue file without its second page": lose_queue_page(1),
    "queue file without its first page": lose_queue_page(0),
    "queue file with wrong entries": scramble_queue,
    "queue files that changed places": swap_queue_files,
    "no first index file": remove_index(0),
    "no second index file": remove_index(1),
    "no last index file": remove_index(-1),
    "index file cut": cut_index,
    "index file without header": zero_index_header,
    "index file that counts too much": overstate_index_count,
    "names that mean nothing": name_nonsense,
}
PART_LISTS: dict[str, Change] = {
    "no queue 1": remove(f"consumequeue/{TOPIC}/1"),
    "no topic": remove(f"consumequeue/{TOPIC}"),
    "no queue 3, no settings": remove(f"consumequeue/{TOPIC}/2", "config"),
}


STORES = ("rmq5-clean", "rmq5-killed", "rmq49-clean")
ON_ALL = ("no queue files", "no index", "nothing but the log")


@pytest.mark.parametrize(
    ("case", "name"),
    [
        # All others on one store each; on the other two, for the night.
        pytest.param(case, name, marks=[] if is_due else [pytest.mark.nightly])
        for number, case in enumerate(WHOLE_LISTS)
        for place, name in enumerate(STORES)
        for is_due in (case in ON_ALL or number % len(STORES) == place,)
    ],
)
def test_answers_hold(name: str, case: str, tmp_path: Path) -> None:
    golden = store(name)
    path = golden.copy(tmp_path / "store")
    WHOLE_LISTS[case](path)
    assert_answers(path, messages_of(golden.name))


@pytest.mark.parametrize("case", PART_LISTS)
def test_answers_hold_with_some_queues_gone(case: str, tmp_path: Path) -> None:
    golden = store("rmq533-clean")
    path = golden.copy(tmp_path / "store")
    PART_LISTS[case](path)
    assert_answers(path, messages_of(golden.name), topics=False)


def test_torn_log_with_stale_queue_entries(tmp_path: Path) -> None:
    golden = store("rmq5-torn.variant-flip5")
    end = golden.recovery()["afterDispatch"]["commitLogMaxOffset"]
    messages = [m for m in messages_of("rmq5-killed") if m["physicalOffset"] < end]
    assert_answers(golden.path, messages)


def test_first_queue_file_lost(tmp_path: Path) -> None:
    """Two queue files, of which the first is gone, though the log still has its messages."""
    golden = store("rmq5-clean")
    path = golden.copy(tmp_path / "store")
    for directory in (path / "consumequeue").glob("*/*"):
        file = directory / f"{0:020d}"
        data = file.read_bytes()
        for base in range(0, 20_000, 1000):
            (directory / f"{base:020d}").write_bytes(data[base : base + 1000])
            if not any(data[base + 1000 : base + 1020]):
                break
    assert_answers(path, messages_of(golden.name))
    queue_file(path).unlink()
    (path / "consumequeue" / TOPIC / "3" / f"{1000:020d}").unlink()
    max((path / "consumequeue" / "TopicA" / "1").iterdir()).unlink()
    assert_answers(path, messages_of(golden.name))


def test_index_with_loops(tmp_path: Path) -> None:
    """Chains that lead in circles, forwards and out of the file end; hits are still verified."""
    golden = store("rmq5-clean")
    path = golden.copy(tmp_path / "store")
    chance = random.Random(7)
    for file in index_files(path):
        data = bytearray(file.read_bytes())
        for number in range(1, 4000):
            link = chance.choice((number, 3999, 1, -5, 1 << 30, chance.randrange(4000)))
            struct.pack_into(">i", data, 40 + 4000 + 20 * number + 16, link)
        file.write_bytes(data)
    with StoreReader.open(path) as reader:
        for message in messages_of(golden.name)[::50]:
            key = message["properties"].get("UNIQ_KEY")
            if key:
                for record in reader.by_key(message["topic"], key).records:
                    assert key in (record.unique_key, *record.keys)


def test_index_pages_lost_in_a_crash(tmp_path: Path) -> None:
    golden = store("rmq5-killed")
    path = golden.copy(tmp_path / "store")
    overwrite(index_files(path)[-1], 2 * PAGE, bytes(PAGE))
    assert_answers(path, messages_of(golden.name))
    with StoreReader.open(path) as reader:
        assert [damage.file for damage in reader.inspect().damage] == [
            f"index/{index_files(path)[-1].name}"
        ]


def test_odd_files_are_reported(tmp_path: Path) -> None:
    path = store("rmq5-clean").copy(tmp_path / "store")
    cut_queue(333)(path)
    cut_index(path)
    with StoreReader.open(path) as reader:
        report = reader.inspect()
    found = {(damage.file, damage.offset) for damage in report.damage}
    assert (str(queue_file(path).relative_to(path)), 320) in found
    assert len(report.index) == 2
