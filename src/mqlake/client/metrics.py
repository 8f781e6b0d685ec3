"""The metrics of a program's producers and consumers, for Prometheus.

    async with Producer("localhost:9876") as producer:
        async with ClientMetrics(producer).serve(port=9100):
            ...

Programs without an event loop, such as those with clients of `mqlake.client.blocking`, use
`serve_in_thread`.

It needs `pip install 'mqlake[metrics]'`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from mqlake.metrics.exporting.options import ServedPages
from mqlake.metrics.metric import Sample, summed
from mqlake.metrics.observed import labels_of
from mqlake.metrics.page_thread import PageThread
from mqlake.metrics.publishing import publish


class Measured(Protocol):
    """A producer or a consumer, of `mqlake.client` or `mqlake.client.blocking`."""

    def samples(self) -> Sequence[Sample]:
        """Return its samples as they are now."""
        ...


class ClientMetrics:
    """The metrics of some producers and consumers, whether they are open or not.

    Args:
        clients: whose metrics they are. Those of one group are counted together. Clients of one
            group in different programs need labels that tell them apart.
        labels: further labels of all samples.
    """

    def __init__(self, *clients: Measured, labels: Mapping[str, str] | None = None) -> None:
        self._clients = clients
        own = labels_of("client", socket.gethostname(), "")
        self.labels: Mapping[str, str] = {**(labels or {}), **own}

    def text(self) -> bytes:
        """Return all samples in Prometheus's text format, for a program with pages of its own.

        Raises:
            MqlakeError: `prometheus_client` is not installed.
        """
        from mqlake.metrics.exposition import encode

        return encode(self._samples(), self.labels)

    @asynccontextmanager
    async def serve(self, port: int, host: str = "127.0.0.1") -> AsyncGenerator[int]:
        """Serve `/metrics` while the block runs; yield the port, another one if it is 0.

        Raises:
            MqlakeError: the address cannot be listened on, or `prometheus_client` is not installed.
        """
        async with AsyncExitStack() as undo:
            published = await publish(ServedPages(host, port), self, undo)
            assert published.port is not None
            yield published.port

    def serve_in_thread(self, port: int, host: str = "127.0.0.1") -> PageThread:
        """Return a context manager that serves `/metrics` from another thread; its attribute `port`
        is the port, another one if `port` is 0.

        For programs without an event loop. Entering raises what `serve` raises.
        """
        return PageThread(ServedPages(host, port), self)

    def not_ready(self) -> str | None:
        """Return None: nobody sends requests to a client."""
        return None

    async def samples(self) -> Sequence[Sample]:
        """Return all samples."""
        return self._samples()

    def _samples(self) -> list[Sample]:
        return summed(sample for client in self._clients for sample in client.samples())
