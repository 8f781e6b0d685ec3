"""Begin a coroutine at once: most sends to the broker of the own process never wait.

A coroutine that runs as a task begins in the next round of the event loop, and its result is taken
in another one.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def begun(coroutine: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """Return what a coroutine returns; if it waits for something, a coroutine that continues it.

    Until it waits, it runs outside of any task: it must not use `asyncio.timeout` before that.
    """
    try:
        waited = coroutine.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    return _continued(_Begun(coroutine, waited))


async def _continued(rest: _Begun[T]) -> T:
    return await rest


class _Begun(Generic[T]):
    """A coroutine that waits.

    Args:
        waited: what it waits for, which it has yielded.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], waited: object) -> None:
        self._coroutine, self._waited = coroutine, waited

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, waited = self._coroutine, self._waited
        try:
            while True:
                try:
                    value = yield waited
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 (the coroutine is to handle it)
                    waited = coroutine.throw(error)
                else:
                    waited = coroutine.send(value)
        except StopIteration as done:
            found: T = done.value
            return found
        finally:
            coroutine.close()
