"""Totals as differences: what does not arrive is in the next export."""

from __future__ import annotations

import random

from mqlake.metrics.exporting.deltas import Deltas
from mqlake.metrics.histogram import Histogram
from mqlake.metrics.metric import Sample
from tests.metrics.exporting.samples import SENT, SIZE, TIME


def times(*values: float) -> Histogram:
    found = Histogram((1.0, 10.0))
    for value in values:
        found.add(value)
    return found


def test_differences_are_those_since_the_last_export_that_arrived() -> None:
    deltas = Deltas(0.0)
    first = [Sample(SENT, 5, ("T",)), Sample(SIZE, 3), Sample(TIME, times(0.5, 5), ("T",))]
    assert deltas.of(first) == first
    assert deltas.of(first) == first  # It has not arrived.
    deltas.arrived(first, 1.0)
    second = [Sample(SENT, 8, ("T",)), Sample(SIZE, 2), Sample(TIME, times(0.5, 5, 5, 50), ("T",))]
    sent, size, time = deltas.of(second)
    assert (sent.value, size.value) == (3, 2)
    assert isinstance(time.value, Histogram)
    assert (time.value.counts, time.value.total) == ([0, 1, 1], 55.0)
    assert isinstance(second[2].value, Histogram)
    assert second[2].value.counts == [1, 2, 1]


def test_a_total_that_begins_anew_counts_whole() -> None:
    deltas = Deltas(0.0)
    deltas.arrived([Sample(SENT, 5, ("T",)), Sample(TIME, times(5), ("T",))], 1.0)
    sent, time = deltas.of([Sample(SENT, 2, ("T",)), Sample(TIME, times(0.5), ("T",))])
    assert sent.value == 2
    assert isinstance(time.value, Histogram)
    assert time.value.counts == [1, 0, 0]


def test_the_sum_of_what_arrives_is_the_total() -> None:
    rng, deltas = random.Random(1), Deltas(0.0)
    totals, sums = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for _ in range(500):
        totals[rng.choice("abc")] += rng.randrange(5)
        samples = [Sample(SENT, count, (name,)) for name, count in totals.items()]
        found = deltas.of(samples)
        if rng.random() < 0.5:
            deltas.arrived(samples, 1.0)
            for each in found:
                assert isinstance(each.value, int)
                sums[each.labels[0]] += each.value
    deltas_left = deltas.of([Sample(SENT, count, (name,)) for name, count in totals.items()])
    for each in deltas_left:
        assert isinstance(each.value, int)
        sums[each.labels[0]] += each.value
    assert sums == totals


def test_a_difference_begins_when_the_total_last_arrived() -> None:
    deltas = Deltas(0.0)
    one, other = Sample(SENT, 1, ("A",)), Sample(SENT, 1, ("B",))
    deltas.arrived([one], 10.0)
    assert [deltas.begin_of(each) for each in (one, other)] == [10.0, 0.0]
    assert [each.value for each in deltas.of([one, other])] == [0, 1]
    deltas.arrived([other], 20.0)
    deltas.complete([other], 20.0)
    assert [deltas.begin_of(each) for each in (one, other)] == [20.0, 20.0]
    assert [each.value for each in deltas.of([one, other])] == [1, 0]
