from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.dispatch.gap import Gap
from mqlake.formats.record import Fault
from mqlake.jobs.splits.sizes import LARGEST
from mqlake.jobs.splits.splits import ScannedSplit, Span, Split, clip, join_gaps, plan, stitch

MIB = 1 << 20
SPANS = st.lists(st.integers(0, 40), min_size=1, max_size=8).map(
    lambda sizes: [Span(n * 50, n * 50 + size, (n + 1) * 50) for n, size in enumerate(sizes)]
)


@given(SPANS, st.integers(1, 30))
def test_splits_cover_each_segment_once(spans: list[Span], count: int) -> None:
    jobs = plan(spans, 2, count)

    splits = [split for job in jobs for split in job]
    for span in spans:
        own = [split for split in splits if split.segment == span.base]
        assert span.base == own[0].start
        assert span.end == own[-1].end
        assert all(a.end == b.start for a, b in pairwise(own))
        assert [True] + [False] * (len(own) - 1) == [split.exact for split in own]
    assert sorted(splits, key=lambda split: split.start) == splits
    assert len(jobs) <= count + 1


@pytest.mark.parametrize(
    ("sizes", "parallelism", "jobs"),
    [
        ([1], 8, 1),  # too small to share
        ([1] * 6, 2, 1),
        ([1] * 100, 2, 2),
        ([1024], 2, 2),
        ([1024] * 3, 2, 4),
        ([1024] * 3, 8, 8),
    ],
)
def test_about_one_task_a_core(sizes: list[int], parallelism: int, jobs: int) -> None:
    spans = [
        Span(n * LARGEST, n * LARGEST + size * MIB, (n + 1) * LARGEST)
        for n, size in enumerate(sizes)
    ]

    assert jobs == len(plan(spans, parallelism))


def scanned(
    start: int, end: int, first: int, stop: int, *gaps: Gap, exact: bool = False
) -> ScannedSplit:
    return ScannedSplit(Split(0, start, end, exact), first, stop, list(gaps))


def test_splits_that_meet_need_no_other_pass() -> None:
    jobs = [
        [scanned(0, 100, 0, 130, exact=True)],
        [scanned(100, 200, 130, 310)],
        [scanned(200, 300, 300, 300)],
        [scanned(300, 400, 310, 400)],
    ]

    assert stitch(jobs) is None


def test_a_wrong_start_is_scanned_again_to_the_end_of_its_segment() -> None:
    jobs = [
        [scanned(0, 100, 0, 130, exact=True)],
        [scanned(100, 200, 120, 210)],
        [scanned(200, 300, 210, 300)],
    ]

    assert [
        (Split(0, 0, 100, True),),
        (Split(0, 130, 300, True),),
    ] == stitch(jobs)


def test_nothing_found_behind_a_boundary_is_scanned_again() -> None:
    jobs = [[scanned(0, 100, 0, 130, exact=True)], [scanned(100, 200, 200, 200)]]

    assert [(Split(0, 0, 100, True),), (Split(0, 130, 200, True),)] == stitch(jobs)


def test_zeros_behind_the_last_record_need_no_other_pass() -> None:
    rest = Gap(60, 40, Fault.UNWRITTEN, True, open=True)
    jobs = [
        [scanned(0, 100, 0, 100, rest, exact=True)],
        [scanned(100, 200, 200, 200, Gap(100, 100, Fault.UNWRITTEN, True))],
    ]

    assert stitch(jobs) is None
    assert [Gap(60, 140, Fault.UNWRITTEN, True)] == join_gaps(jobs)


def test_what_is_inside_of_a_record_is_no_gap() -> None:
    jobs = [
        [scanned(0, 100, 0, 200, exact=True)],
        [scanned(100, 200, 200, 200, Gap(100, 100, Fault.MAGIC, False))],
    ]

    assert stitch(jobs) is None
    assert join_gaps(jobs) == []


def test_the_inside_of_a_record_excuses_no_wrong_start() -> None:
    jobs = [
        [scanned(0, 100, 0, 230, exact=True)],
        [scanned(100, 200, 200, 200, Gap(100, 100, Fault.MAGIC, False, open=True))],
        [scanned(200, 300, 260, 300)],
    ]

    assert [
        (Split(0, 0, 100, True),),
        (Split(0, 100, 200, False),),
        (Split(0, 230, 300, True),),
    ] == stitch(jobs)


def test_a_record_found_inside_of_the_one_before_drops_its_split() -> None:
    jobs = [[scanned(0, 100, 0, 200, exact=True)], [scanned(100, 200, 150, 200)]]

    assert [(Split(0, 0, 100, True),)] == stitch(jobs)


def test_a_gap_over_a_border_is_one_gap() -> None:
    jobs = [
        [scanned(0, 100, 0, 100, Gap(90, 10, Fault.MAGIC, False, open=True), exact=True)],
        [scanned(100, 200, 150, 200, Gap(180, 20, Fault.SIZE, True, open=True))],
        [scanned(200, 300, 200, 300, Gap(200, 30, Fault.UNWRITTEN, True), exact=True)],
    ]

    assert stitch(jobs) is None
    assert [
        Gap(90, 60, Fault.MAGIC, False),
        Gap(180, 50, Fault.SIZE, True),
    ] == join_gaps(jobs)


def test_clip_drops_what_starts_behind_the_end() -> None:
    jobs = [(Split(0, 0, 100, True),), (Split(0, 100, 200, False), Split(200, 200, 300, True))]

    assert [(Split(0, 0, 100, True),), (Split(0, 100, 150, False),)] == clip(jobs, 150)
