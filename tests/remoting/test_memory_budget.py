"""The memory budget by itself: who is held back, who is evicted, who is spared."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from mqlake.remoting.memory_budget import GRACE, MemoryBudget
from tests.until import until

LIMIT = 10_000_000


class Holder:
    """A connection of which only the size counts, and since when it stands still.

    Attributes:
        measured: how often connections were looked at, all together.
    """

    measured = 0

    def __init__(self, since: float, holders: set[Holder]) -> None:
        self.held = self.size = 0
        self.since = since
        self.is_held_back = False
        self._holders = holders
        holders.add(self)

    def measure(self) -> int:
        Holder.measured += 1
        return self.size

    def greed(self, now: float, grace: float) -> float:
        age = now - self.since
        return 0.0 if age < grace else self.size * age**3

    def hold_back(self) -> None:
        self.is_held_back = True

    def go_on(self) -> None:
        self.is_held_back = False

    def evict(self, reason: str) -> None:
        assert f"{self.size} bytes" in reason
        self.size = 0

    def grow(self, budget: MemoryBudget, size: int) -> None:
        self.size += size
        budget.hold(self, self.size)


def test_the_one_that_stands_still_goes_and_the_one_that_moves_goes_on() -> None:
    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(LIMIT, loop)
        old = [Holder(loop.time() - 5, holders) for _ in range(4)]
        for one in old:
            one.grow(budget, 2_000_000)
        new = Holder(loop.time(), holders)
        small = Holder(loop.time(), holders)
        new.grow(budget, 2_000_001)
        small.grow(budget, 1000)
        assert (new.is_held_back, small.is_held_back) == (True, False)
        await until(lambda: not new.is_held_back)
        assert (new.size, small.size) == (2_000_001, 1000)
        assert sorted(one.size for one in old) == [0, 0, 2_000_000, 2_000_000]
        assert budget.used == sum(one.size for one in holders)

    asyncio.run(run())


def test_the_largest_of_those_that_stand_still_goes_first() -> None:
    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(LIMIT, loop)
        since = loop.time() - 5
        large, *others = [Holder(since, holders) for _ in range(8)]
        for one in others:
            one.grow(budget, 1_000_000)
        large.grow(budget, 3_500_000)
        await until(lambda: not large.size)
        assert all(one.size for one in others)

    asyncio.run(run())


def test_nothing_is_spared_for_long_and_the_budget_is_hardly_exceeded() -> None:
    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(LIMIT, loop)
        begin = loop.time()
        moving = [Holder(begin + 1e9 * GRACE, holders) for _ in range(30)]
        for one in moving:
            one.greed = lambda now, grace, one=one: 0.0 if grace else float(one.size)
            one.grow(budget, 1_000_000)
            assert budget.used <= LIMIT * 5 / 4
        await until(lambda: budget.used <= LIMIT)
        await until(lambda: not any(one.is_held_back for one in moving if one.size))

    asyncio.run(run())


def test_few_of_very_many_connections_are_looked_at_in_one_go() -> None:
    limit, part = 192 << 20, 1 << 18

    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(limit, loop)
        # For so long that a pause of the machine does not make the large ones look greedier.
        small = [Holder(loop.time() - 1000, holders) for _ in range(20_000)]
        for one in small:
            one.grow(budget, 9000)
        large = [Holder(loop.time(), holders) for _ in range(12)]
        Holder.measured, looks, is_over = 0, list[int](), False

        def look() -> None:
            looks.append(Holder.measured)
            if not is_over:
                loop.call_soon(look)

        look()
        for _ in range(8 << 20 >> 18):
            for one in large:
                before = Holder.measured
                one.grow(budget, part)
                one.since = loop.time()
                assert Holder.measured - before < 2000
                assert budget.used <= limit * 5 / 4
        await until(lambda: budget.used <= limit)
        await until(lambda: not any(one.is_held_back for one in large))
        is_over = True
        assert max(after - before for before, after in pairwise(looks)) < 10_000
        assert all(one.size for one in large), "they moved a moment ago, and the small ones did not"
        assert budget.used == sum(one.size for one in holders)

    asyncio.run(run())


def test_connections_that_hold_nothing_are_not_looked_at() -> None:
    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(LIMIT, loop)
        for _ in range(1000):
            one = Holder(loop.time() - 5, holders)
            one.grow(budget, 1)
            one.grow(budget, -1)
        Holder.measured = 0
        Holder(loop.time() - 5, holders).grow(budget, LIMIT + 1)
        await until(lambda: budget.used <= LIMIT)
        assert Holder.measured < 10

    asyncio.run(run())


def test_a_new_limit_says_anew_who_holds_much() -> None:
    async def run() -> None:
        loop, holders = asyncio.get_running_loop(), set[Holder]()
        budget = MemoryBudget(LIMIT, loop)
        early = Holder(loop.time() - 5, holders)
        early.grow(budget, 30_000)
        others = [Holder(loop.time() - 5, holders) for _ in range(600)]
        for one in others:
            one.grow(budget, 100)
        late = Holder(loop.time() - 5, holders)
        late.grow(budget, 15_000)
        budget.set_limit(LIMIT // 5)
        assert budget.limit == LIMIT // 5
        # `late` holds much now, although it was the last of those that hold a little.
        Holder(loop.time(), holders).grow(budget, 2_480_000)
        assert (early.size, late.size) == (0, 0)
        assert budget.used == sum(one.size for one in holders)
        budget.set_limit(LIMIT)
        for one in holders:
            one.size = 0
            budget.hold(one, 0)
        assert budget.used == 0

    asyncio.run(run())
