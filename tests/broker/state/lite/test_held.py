"""What groups have popped of lite topics needs no more memory than the queues that are held."""

from __future__ import annotations

import asyncio

from mqlake.broker.state.lite.held import HeldLite, LiteKey

DAY = 24 * 3600 * 1000


def test_what_was_acknowledged_waits_for_no_time() -> None:
    async def check() -> None:
        held = HeldLite(lambda: 1000, lambda _: None)
        for number in range(1000):
            held.hold(("group", f"lite{number}"), None, 1000, DAY + number, [number])
            held.acknowledge(("group", f"lite{number}"), number, 1000)
        assert len(held) == 0
        assert len(held._due) < 100
        assert len(held._next) < 100
        held.stop()

    asyncio.run(check())


def test_a_queue_whose_time_changes_is_freed_at_its_last_time() -> None:
    async def check() -> None:
        now, freed = [0], list[LiteKey]()
        held = HeldLite(lambda: now[0], freed.append)
        key, other = ("group", "lite"), ("group", "other")
        held.hold(other, None, 0, DAY, [1])
        held.hold(key, None, 0, DAY, [7])
        for visible in range(2 * DAY, DAY, -DAY // 1000):
            held.change_time(key, 7, 0, visible, is_suspended=False)
        assert len(held._due) < 100
        now[0] = DAY
        held._look()
        assert freed == [other]
        now[0] = visible
        held._look()
        assert freed == [other, key]
        held.stop()

    asyncio.run(check())
