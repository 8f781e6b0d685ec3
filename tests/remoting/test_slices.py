"""Long work a slice at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import pytest

from mqlake.protocol.errors import RemotingError
from mqlake.remoting import slices as slices_module
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import AT_ONCE, OF_ONE, ROUND, TURN, Job, Slices

T = TypeVar("T")


class Clock:
    """The time of the jobs, which only their work takes."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


@pytest.fixture(autouse=True)
def timed_by_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a round be over when jobs have worked for so long, however slow the machine is."""
    monkeypatch.setattr(slices_module, "perf_counter", CLOCK)


class Connection:
    is_closed = False
    address = "test"


def peer() -> Peer:
    return cast("Peer", Connection())


async def value(result: T | Coroutine[Any, Any, T]) -> T:
    return await result if asyncio.iscoroutine(result) else cast("T", result)


def work(steps: int, done: list[str] | None = None, name: str = "") -> Job[str]:
    """Take a turn's time for each step."""
    for _ in range(steps):
        CLOCK.now += TURN
        yield
    if done is not None:
        done.append(name)
    return name


def slices(capacity: int = 1000) -> Slices:
    return Slices(lambda: (capacity, "theSetting"))


def test_a_short_request_is_answered_at_once() -> None:
    async def main() -> None:
        assert slices().serve(peer(), work(0, name="short")) == "short"

    asyncio.run(main())


def test_others_are_served_during_a_long_one() -> None:
    async def main() -> None:
        many = slices()
        rounds = 0
        long = asyncio.ensure_future(value(many.serve(peer(), work(50, name="long"))))
        while not long.done():
            rounds += 1
            await asyncio.sleep(0)
        assert await long == "long"
        assert rounds > 50 * TURN / ROUND / 2
        assert len(many) == 0

    asyncio.run(main())


def test_many_requests_in_one_round_are_no_longer_than_a_few() -> None:
    async def main() -> None:
        many = slices()
        begin = CLOCK.now
        results = [many.serve(peer(), work(1)) for _ in range(100)]
        assert CLOCK.now - begin <= ROUND + TURN, "the rest waits for its turn"
        await asyncio.gather(*(value(result) for result in results))

    asyncio.run(main())


def test_requests_of_one_connection_keep_their_order() -> None:
    async def main() -> None:
        many, done = slices(), list[str]()
        one, other = peer(), peer()
        results = [
            many.serve(one, work(20, done, "first")),
            many.serve(one, work(0, done, "second")),
            many.serve(other, work(2, done, "other")),
        ]
        await asyncio.gather(*(value(result) for result in results))
        assert done.index("first") < done.index("second")
        assert done[0] == "other"

    asyncio.run(main())


def test_more_long_requests_than_are_worked_on_at_once() -> None:
    async def main() -> None:
        many, done = slices(), list[str]()
        results = [many.serve(peer(), work(5, done, str(number))) for number in range(3 * AT_ONCE)]
        await asyncio.gather(*(value(result) for result in results))
        assert sorted(done, key=int) == [str(number) for number in range(3 * AT_ONCE)]

    asyncio.run(main())


def test_what_a_job_raises_is_told_to_who_waits() -> None:
    def fail(steps: int) -> Job[str]:
        yield from work(steps)
        raise ValueError("wrong")

    async def main() -> None:
        many = slices()
        with pytest.raises(ValueError, match="wrong"):
            many.serve(peer(), fail(0))
        with pytest.raises(ValueError, match="wrong"):
            await value(many.serve(peer(), fail(20)))
        many.start(fail(1))  # is logged
        assert await many.finish(work(1, name="goes on")) == "goes on"

    asyncio.run(main())


def test_a_connection_that_is_closed() -> None:
    async def main() -> None:
        many, done = slices(), list[str]()
        gone = peer()
        dropped = asyncio.ensure_future(value(many.serve(gone, work(20, done, "dropped"))))
        kept = asyncio.ensure_future(value(many.serve(gone, work(20, done, "kept"), is_kept=True)))
        gone.is_closed = True  # pyright: ignore[reportAttributeAccessIssue]
        await kept
        await dropped
        assert done == ["kept"]
        assert len(many) == 0

    asyncio.run(main())


def test_too_many() -> None:
    async def main() -> None:
        many, one = slices(2 * OF_ONE), peer()
        results = [many.serve(one, work(3)) for _ in range(OF_ONE)]
        with pytest.raises(RemotingError, match="of this connection"):
            many.serve(one, work(3))
        results += [many.serve(peer(), work(3)) for _ in range(OF_ONE)]
        with pytest.raises(RemotingError, match="theSetting"):
            many.serve(peer(), work(3))
        await asyncio.gather(*(value(result) for result in results))
        await value(many.serve(one, work(3)))

    asyncio.run(main())


def test_a_stop_ends_all() -> None:
    async def main() -> None:
        many = slices()
        results = [asyncio.ensure_future(value(many.serve(peer(), work(1000)))) for _ in range(10)]
        await asyncio.sleep(0)
        many.stop()
        ended = await asyncio.gather(*results, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)

    asyncio.run(main())


def test_a_table_is_emptied_an_entry_at_a_time() -> None:
    table = {number: str(number) for number in range(3)}
    sizes = [len(table) for _ in slices_module.empty(table)]
    assert (sizes, table) == ([2, 1, 0], {})
