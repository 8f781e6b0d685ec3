"""The end of a log's mapping is read ahead only if records are written through it."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.readahead import set_readahead
from mqlake.store.log.end_readahead import EndReadahead
from tests.store.log.test_owned_log import content, open_log

MIB = 1 << 20
LAG = 16 * MIB
LONG = bytes([1]) * (MIB // 4)


class Advised:
    """What is switched off of each mapping, by the advice that was given."""

    def __init__(self) -> None:
        self.off: dict[int, set[int]] = {}

    def note(self, mapped: memoryview, start: int, end: int, *, on: bool) -> None:
        """Note advice in whole MiB."""
        assert 0 <= start <= end <= len(mapped)
        set_readahead(mapped, start, end, on=on)
        steps = set(range(start // MIB, -(-end // MIB)))
        off = self.off.setdefault(id(mapped.obj), set())
        self.off[id(mapped.obj)] = off - steps if on else off | steps

    def of(self, mapped: memoryview) -> set[int]:
        """Return the MiB of a mapping that are not read ahead."""
        return self.off.get(id(mapped.obj), set())


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> Advised:
    found = Advised()
    monkeypatch.setattr("mqlake.store.log.end_readahead.set_readahead", found.note)
    return found


def test_calls_switch_readahead_off_for_the_end_of_the_file(advised: Advised) -> None:
    mapped, end = memoryview(bytearray(40 * MIB)), EndReadahead()
    end.begin(mapped, 0)
    for position in range(MIB, 30 * MIB, MIB):
        end.note_call(MIB)
        end.choose(position)
        assert advised.of(mapped) == set(range(max(0, position - LAG) // MIB, 40))


def test_whatever_wrote_most_bytes_decides_about_readahead(advised: Advised) -> None:
    mapped, end = memoryview(bytearray(4 * MIB)), EndReadahead()
    end.begin(mapped, 100)
    end.note_call(500)
    end.choose(1100)
    assert not advised.of(mapped)
    end.note_call(501)
    end.choose(2100)
    assert advised.of(mapped) == {0, 1, 2, 3}
    end.choose(2100)  # Nothing was written since.
    assert advised.of(mapped) == {0, 1, 2, 3}
    end.choose(3100)
    assert not advised.of(mapped)


def test_a_complete_file_is_read_ahead_and_the_next_one_as_this_was(advised: Advised) -> None:
    files, end = [memoryview(bytearray(2 * MIB)) for _ in range(3)], EndReadahead()
    end.begin(files[0], 0)
    end.note_call(MIB)
    end.choose(MIB)
    end.begin(files[1], 0)
    assert [advised.of(file) for file in files] == [set(), {0, 1}, set()]
    end.choose(MIB)
    end.begin(files[2], 0)
    assert not any(advised.of(file) for file in files)


@pytest.mark.parametrize("is_long", [True, False])
def test_a_log_chooses_by_the_size_of_its_appends(
    advised: Advised, tmp_path: Path, is_long: bool
) -> None:
    disk = LocalOwnedDirectory.make(tmp_path)
    log = open_log(disk, size=4 * MIB)
    piece = LONG if is_long else LONG[:1024]
    for _ in range(7 * MIB // len(piece)):
        log.append(piece)
    last = memoryview(log.array.base)  # pyright: ignore[reportArgumentType]
    assert [segment.base for segment in log.segments] == [0, 4 * MIB]
    assert advised.of(last) == (set(range(4)) if is_long else set())
    assert {len(off) for off in advised.off.values()} <= {0, 4}
    log.unsynced().complete()
    assert content(disk, 0).startswith(piece)
    log.close()


def test_advice_that_is_refused_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * mmap.PAGESIZE))
    with path.open("r+b") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0))
    set_readahead(mapped, 1, mapped.nbytes, on=False)  # It does not begin with a page.
    set_readahead(mapped, mmap.PAGESIZE, mapped.nbytes, on=False)
    set_readahead(memoryview(b"no file"), 0, 7, on=False)
    assert not any(mapped)
