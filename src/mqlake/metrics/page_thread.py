"""The pages of a program whose own threads have other work: on an event loop in another thread."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Self

from mqlake.metrics.exporting.options import ServedPages
from mqlake.metrics.observed import Observed
from mqlake.metrics.publishing import publish


class PageThread:
    """Serves pages from entering to leaving.

    Attributes:
        port: where they are served, once entered.
    """

    def __init__(self, where: ServedPages, observed: Observed) -> None:
        self._where, self._observed = where, observed
        self._begun = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        """Serve.

        Raises:
            MqlakeError: a package is not installed, or the address cannot be listened on.
        """
        self._thread.start()
        self._begun.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *failure: object) -> None:
        self._loop.call_soon_threadsafe(self._told.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 (raised where the pages were asked for)
            self._failure = error
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop, self._told = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as undo:
            published = await publish(self._where, self._observed, undo, measures_lag=False)
            self.port = published.port or 0
            self._begun.set()
            await self._told.wait()
