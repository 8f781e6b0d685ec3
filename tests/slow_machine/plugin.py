"""The option `--slow-machine`, and what it does to each test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack

import pytest

from tests.slow_machine.calls import late_dispatch, replace_calls
from tests.slow_machine.drawn import Drawn
from tests.slow_machine.processes import pause_processes
from tests.slow_machine.world import World

EXEMPT = tuple(
    f"tests/{name}/"
    for name in (
        "comparison",
        "crash",
        "dispatch",
        "documents",
        "formats",
        "kernels",
        "protocol",
        "simulation",
        "slow_machine",
    )
)
"""Tests of simulated time and of functions that nothing delays."""


class SlowMachine:
    """The plugin: one test after the other, each with its own delays."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: Drawn | None = None
        self._world = World()
        replace_calls(self._delay, self._world)
        pause_processes(self._delay)

    def _delay(self, kind: str) -> float:
        drawn = self._drawn
        return 0.0 if drawn is None else drawn.delay(kind)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Slow down the test with its fixtures."""
        if item.nodeid.startswith(EXEMPT):
            return (yield)
        drawn = Drawn(self._seed, item.nodeid)
        with ExitStack() as undo:
            for patch in [] if drawn.dispatch is None else late_dispatch(drawn.dispatch):
                undo.enter_context(patch)
            self._drawn = drawn
            self._world.begin(is_frozen_by_sleeps=drawn.is_frozen_by_sleeps)
            undo.callback(self._end)
            return (yield)

    def _end(self) -> None:
        self._drawn = None
        self._world.begin(is_frozen_by_sleeps=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Tell what was slow in a test that failed."""
        report = yield
        if report.failed and self._drawn is not None:
            again = f"pytest -n 0 --slow-machine {self._seed} {item.nodeid}"
            report.sections.append(("slow machine", f"{self._drawn}\nrun it again: {again}"))
        return report


def add_option(parser: pytest.Parser) -> None:
    """Add the option `--slow-machine`."""
    parser.addoption(
        "--slow-machine",
        type=int,
        metavar="SEED",
        help="delay dispatch, syncs, event loops, threads, connections and processes at random",
    )


def register(config: pytest.Config) -> None:
    """Slow down the tests that this process runs, if the option was given."""
    seed = config.getoption("--slow-machine")
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if seed is not None and runs_tests:
        config.pluginmanager.register(SlowMachine(seed), "slow_machine")
