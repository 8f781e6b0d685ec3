from __future__ import annotations

from mqlake.broker.state.times import Durations


def test_nothing_took_no_time() -> None:
    times = Durations()
    assert (times.longest, times.within(0.99)) == (0.0, 0.0)
    assert times.spread() == (
        "[<=0ms]:0 [0~10ms]:0 [10~50ms]:0 [50~100ms]:0 [100~200ms]:0 [200~500ms]:0 [500ms~1s]:0"
        " [1~2s]:0 [2~3s]:0 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:0 "
    )


def test_how_many_took_how_long() -> None:
    times = Durations()
    times.add(0.000_04, 98)
    times.add(0.003)
    times.add(30)
    assert times.longest == 30
    assert times.within(0.5) == 0.05
    assert times.within(0.99) == 5
    assert times.within(0.999) == 30_000
    assert times.spread().startswith("[<=0ms]:98 [0~10ms]:1 [10~50ms]:0 ")
    assert times.spread().endswith("[10s~]:1 ")


def test_a_bound_is_no_longer_than_the_longest() -> None:
    times = Durations()
    times.add(0.003)
    assert times.within(0.99) == 3.0
    times.add(1.5)
    assert "[1~2s]:1 " in times.spread()


def test_each_time_is_shown_once() -> None:
    times = Durations()
    for milliseconds in (
        0.01,
        0.7,
        1.5,
        12,
        60,
        150,
        300,
        700,
        1500,
        2500,
        3500,
        4500,
        7000,
        11_000,
    ):
        times.add(milliseconds / 1000)
    counts = [int(part.rpartition(":")[2]) for part in times.spread().split()]
    assert counts == [2, *[1] * 12]
