"""Tests for which sends are put together."""

from __future__ import annotations

import asyncio
from typing import cast

from mqlake.broker.send.company import Company
from mqlake.remoting.connection import Peer
from tests import simulated


def peers(count: int) -> list[Peer]:
    return [cast("Peer", object()) for _ in range(count)]


def test_a_connection_alone_is_never_put_together() -> None:
    async def run() -> None:
        (one,) = peers(1)
        company = Company(asyncio.get_running_loop())
        for _ in range(3):
            assert not any(company.has(one) for _ in range(4))
            await asyncio.sleep(0)

    simulated.run(run())


def test_connections_that_send_in_turn_are_alone() -> None:
    async def run() -> None:
        one, other = peers(2)
        company = Company(asyncio.get_running_loop())
        for _ in range(3):
            assert not company.has(one)
            await asyncio.sleep(0)
            assert not company.has(other)
            await asyncio.sleep(0)

    simulated.run(run())


def test_connections_of_one_round_are_put_together_from_the_second_on() -> None:
    async def run() -> None:
        one, other = peers(2)
        company = Company(asyncio.get_running_loop())
        assert not company.has(one)
        assert company.has(other)
        await asyncio.sleep(0)
        assert company.has(one)
        assert company.has(other)
        await asyncio.sleep(0)
        assert company.has(one)
        await asyncio.sleep(0)
        assert not company.has(one)

    simulated.run(run())
