"""Every handler, with inputs at the limits, and what holds the event loop longest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.codes import RequestCode
from mqlake.remoting.slices import Slices
from tests.broker.running import running
from tests.budget.expiry import measure_expiry
from tests.budget.measured import Measured
from tests.budget.measuring import LARGEST, measure_broker, measure_name_server
from tests.budget.meter import Meter
from tests.budget.report import too_long
from tests.budget.requests import BROKER, NAME_SERVER

SHARE = 16
"""In `make test`, tables have a sixteenth of what the limits allow; topics have all queues, and a
quarter of them has messages.
"""
ALLOWANCE = 4
"""How often the budget a piece may take in `make test`. Messages of 4 MiB are copied and checked in
nearly the whole budget on an idle machine, and other tests compete for its memory. Work without a
bound takes longer by far; `python -m tests.budget` allows no more than the budget.
"""


def test_each_route_has_requests(tmp_path: Path) -> None:
    """A new route needs an entry in tests/budget/requests.py, with its inputs at the limits."""

    async def codes() -> set[int]:
        async with running(tmp_path) as broker:
            return {int(route.code) for route in broker.broker.routes}

    assert {RequestCode(code) for code in asyncio.run(codes())} == BROKER.keys()
    assert {RequestCode(route.code) for route in NameServer().routes} == NAME_SERVER.keys()


@pytest.mark.timeout(600)
def test_no_handler_of_the_broker_takes_too_long(tmp_path: Path) -> None:
    check(asyncio.run(_measured(tmp_path)))


def test_no_handler_of_the_name_server_takes_too_long() -> None:
    async def measured() -> list[Measured]:
        meter = Meter()
        with meter.installed():
            return await measure_name_server(meter, SHARE, ALLOWANCE)

    check(asyncio.run(measured()))


@pytest.mark.parametrize("are_stored", [False, True])
def test_pops_that_expire_together_do_not_take_too_long(tmp_path: Path, are_stored: bool) -> None:
    async def measured() -> list[Measured]:
        meter = Meter()
        with meter.installed():
            return [await measure_expiry(tmp_path, meter, SHARE, are_stored=are_stored)]

    check(asyncio.run(measured()))


async def _measured(path: Path) -> list[Measured]:
    meter = Meter()
    with meter.installed():
        return await measure_broker(path / "store", meter, SHARE, ALLOWANCE)


def check(found: list[Measured]) -> None:
    assert too_long(found, ALLOWANCE) == []
    assert [one.name for one in found if one.size > LARGEST] == []


def test_the_meter_finds_long_steps() -> None:
    """Work between two places at which others may be served counts, wherever it is."""

    def work() -> int:
        return sum(number * number for number in range(100_000))

    async def run(kind: str) -> float:
        meter, slices = Meter(), Slices(lambda: (1, ""))

        def steps(count: int):
            for _ in range(count):
                work()
                yield

        with meter.installed():
            loop = asyncio.get_running_loop()
            if kind == "callback":
                loop.call_soon(lambda: (work(), work(), work()))
            elif kind == "one step":
                slices.start(steps(1))
            elif kind == "steps":
                slices.start(steps(3))
            await asyncio.sleep(0)
            meter.mute()
            for _ in range(20):
                await asyncio.sleep(0)
                meter.mute()
        return meter.take()[0].seconds

    # Other processes may slow one run down, hardly all five.
    times = {
        kind: min(asyncio.run(run(kind)) for _ in range(5))
        for kind in ("nothing", "one step", "steps", "callback")
    }
    assert times["nothing"] < times["one step"] / 2
    assert times["steps"] < 2 * times["one step"]
    assert times["callback"] > 2 * times["one step"]
