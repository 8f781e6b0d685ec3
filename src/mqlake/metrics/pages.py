"""The pages of a program's monitoring endpoint: `/metrics`, `/livez` and `/readyz`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from mqlake.metrics.endpoint import HttpResponse, Make
from mqlake.metrics.exposition import CONTENT_TYPE, encode
from mqlake.metrics.observed import Collector


class ProgramPages:
    """The pages of one program."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._encoding = asyncio.Lock()

    def by_path(self) -> Mapping[str, Make]:
        """Return what makes each page."""
        return {"/metrics": self._metrics, "/livez": self._live, "/readyz": self._ready}

    async def _live(self) -> HttpResponse:
        return HttpResponse(b"ok\n")

    async def _ready(self) -> HttpResponse:
        """Say whether clients may be sent here; if not, why."""
        reason = self._collector.observed.not_ready()
        if reason is None:
            return HttpResponse(b"ok\n")
        return HttpResponse(f"{reason}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    async def _metrics(self) -> HttpResponse:
        """Encode all samples, for one client after another."""
        async with self._encoding:
            found = await self._collector.collect()
            labels = self._collector.observed.labels
            body = await asyncio.to_thread(encode, found, labels)
        return HttpResponse(body, content_type=CONTENT_TYPE)
