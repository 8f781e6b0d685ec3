from __future__ import annotations

from mqlake.formats.kafka.file_name import Kind, State, file_name
from mqlake.kafka.log.segment_files import SegmentFiles, sort_files


def names(offset: int, state: State = State.LIVE) -> list[str]:
    kinds = (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX)
    return [file_name(offset, kind, state) for kind in kinds]


LIVE: frozenset[Kind] = frozenset()
SWAPPED = frozenset(Kind)


def sort(*groups: list[str], ends: dict[int, int] | None = None) -> SegmentFiles:
    return sort_files([name for group in groups for name in group], (ends or {}).__getitem__)


def test_live_files() -> None:
    snapshot = file_name(20, Kind.SNAPSHOT)
    found = sort(names(10), names(0), [snapshot, "leader-epoch-checkpoint", "x.log"])
    assert found == ([(0, LIVE), (10, LIVE)], [20], [], [])


def test_deleted_files_go() -> None:
    found = sort(names(10), names(0, State.DELETED))
    assert found.segments == [(10, LIVE)]
    assert sorted(names(0, State.DELETED)) == sorted(found.removable)


def test_an_index_without_a_log_goes() -> None:
    stray = file_name(5, Kind.TIME_INDEX)
    assert [stray] == sort(names(10), [stray]).removable


def test_a_complete_swap_takes_the_place_of_what_it_covers() -> None:
    found = sort(names(0), names(10), names(20), names(30), names(0, State.SWAP), ends={0: 25})
    assert found.segments == [(0, SWAPPED), (30, LIVE)]
    assert {*names(0), *names(10), *names(20)} == set(found.removable)
    assert names(0, State.SWAP) == found.swapped


def test_cleaned_files_go_and_swaps_of_the_same_split_with_them() -> None:
    found = sort(
        names(0), names(5, State.CLEANED), names(5, State.SWAP), names(3, State.SWAP), ends={3: 4}
    )
    assert found.segments == [(0, LIVE), (3, SWAPPED)]
    assert {*names(5, State.CLEANED), *names(5, State.SWAP)} == set(found.removable)


def test_an_empty_swap_replaces_no_segment_that_exists() -> None:
    found = sort(
        names(0), names(10), names(10, State.SWAP), names(20, State.SWAP), ends={10: 10, 20: 20}
    )
    assert found.segments == [(0, LIVE), (10, LIVE), (20, SWAPPED)]
    assert {*names(10, State.SWAP)} == set(found.removable)


def test_a_log_is_removed_after_its_indexes_and_renamed_before_them() -> None:
    """Otherwise an interruption leaves indexes of another log, or loses those of this one."""
    found = sort(names(0), names(0, State.SWAP), names(10, State.SWAP), ends={0: 0, 10: 15})
    assert found.removable[-1] == file_name(0, Kind.LOG, State.SWAP)
    assert found.swapped[0] == file_name(10, Kind.LOG, State.SWAP)


def test_cleaned_files_are_removed_after_the_swaps_that_they_make_worthless() -> None:
    removable = sort(names(5, State.CLEANED), names(5, State.SWAP), names(9, State.SWAP)).removable
    are_swaps = [name.endswith(State.SWAP) for name in removable]
    assert are_swaps == sorted(are_swaps, reverse=True)


def test_an_index_can_await_its_place_after_its_log() -> None:
    swap = file_name(0, Kind.TRANSACTION_INDEX, State.SWAP)
    assert sort(names(0), [swap]).segments == [(0, frozenset({Kind.TRANSACTION_INDEX}))]
    assert [swap] == sort(names(10), [swap]).removable
