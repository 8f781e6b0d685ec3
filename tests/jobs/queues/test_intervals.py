from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mqlake.jobs.queues.intervals import Intervals

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=12)


def numbers(intervals: Intervals) -> set[int]:
    return {number for start, end in intervals for number in range(start, end)}


@given(PAIRS, st.integers(0, 60), st.integers(1, 10))
def test_intervals_are_the_set_of_their_numbers(
    pairs: list[tuple[int, int]], start: int, length: int
) -> None:
    model = {number for first, count in pairs for number in range(first, first + count)}
    intervals = Intervals((first, first + count) for first, count in pairs)
    asked = set(range(start, start + length))

    assert model == numbers(intervals)
    assert len(model) == intervals.count
    assert asked - model == numbers(Intervals(intervals.missing(start, start + length)))
    assert bool(asked & model) == intervals.overlaps(start, start + length)
    stretches = list(intervals)
    assert all(a[1] < b[0] for a, b in pairwise(stretches))
    if model:
        assert (min(model), max(model) + 1) == (intervals.first, intervals.end)
