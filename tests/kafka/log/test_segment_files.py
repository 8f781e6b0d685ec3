from __future__ import annotations

from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.kafka.log.segment_files import SegmentFiles, sort_files


def names(offset: int, state: State = State.LIVE) -> list[str]:
    kinds = (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX)
    return [file_name(offset, kind, state) for kind in kinds]


def sort(*groups: list[str], ends: dict[int, int] | None = None) -> SegmentFiles:
    return sort_files([name for group in groups for name in group], (ends or {}).__getitem__)


def test_live_files() -> None:
    snapshot = file_name(20, Kind.SNAPSHOT)
    found = sort(names(10), names(0), [snapshot, "leader-epoch-checkpoint", "x.log"])
    assert found == ([(0, State.LIVE), (10, State.LIVE)], [20], [], [])


def test_deleted_files_go() -> None:
    found = sort(names(10), names(0, State.DELETED))
    assert found.segments == [(10, State.LIVE)]
    assert names(0, State.DELETED) == found.removable


def test_an_index_without_a_log_goes() -> None:
    stray = file_name(5, Kind.TIME_INDEX)
    assert [stray] == sort(names(10), [stray]).removable


def test_a_complete_swap_takes_the_place_of_what_it_covers() -> None:
    found = sort(names(0), names(10), names(20), names(30), names(0, State.SWAP), ends={0: 25})
    assert found.segments == [(0, State.SWAP), (30, State.LIVE)]
    assert {*names(0), *names(10), *names(20)} == set(found.removable)
    assert names(0, State.SWAP) == found.swapped


def test_cleaned_files_go_and_swaps_of_the_same_split_with_them() -> None:
    found = sort(
        names(0), names(5, State.CLEANED), names(5, State.SWAP), names(3, State.SWAP), ends={3: 4}
    )
    assert found.segments == [(0, State.LIVE), (3, State.SWAP)]
    assert {*names(5, State.CLEANED), *names(5, State.SWAP)} == set(found.removable)
