"""Totals by labels: their number has a limit."""

from __future__ import annotations

import pytest

from mqlake.metrics.counts import Counts, Histograms
from mqlake.metrics.histogram import Histogram


def test_totals_are_by_labels_and_new_ones_beyond_the_limit_are_left_out() -> None:
    counts = Counts(most=2)
    for topic in ("a", "b", "c", "a", "c"):
        counts.add((topic,), 2)
    assert dict(counts) == {("a",): 4, ("b",): 2}


def test_histograms_are_by_labels_and_are_copies() -> None:
    times = Histograms((1.0, 10.0), most=2)
    for topic, value in (("a", 1), ("b", 11), ("c", 5), ("a", 2)):
        times.add((topic,), value)
    found = dict(times)
    assert {labels: each.counts for labels, each in found.items()} == {
        ("a",): [1, 1, 0],
        ("b",): [0, 0, 1],
    }
    times.add(("a",), 100)
    assert found["a",].count == 2


def test_histograms_may_grow_while_another_thread_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = Histograms((1.0,))
    for topic in "abc":
        times.add((topic,), 1)
    copy = Histogram.copy

    def copy_while_it_grows(found: Histogram) -> Histogram:
        times.add((f"new {id(found)}",), 1)
        return copy(found)

    monkeypatch.setattr(Histogram, "copy", copy_while_it_grows)
    assert [labels for labels, _ in times] == [("a",), ("b",), ("c",)]


def test_what_is_forgotten_makes_room() -> None:
    counts, times = Counts(most=1), Histograms((1.0,), most=1)
    for topic in ("a", "b"):
        counts.add((topic,))
        times.add((topic,), 1)
        counts.forget((topic,))
        times.forget((topic,))
    counts.add(("c",))
    assert dict(counts) == {("c",): 1}
    assert dict(times) == {}
