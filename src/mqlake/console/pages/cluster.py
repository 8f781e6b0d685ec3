"""The page of the cluster: its brokers, how they do, and what needs attention."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.console.page import page
from mqlake.console.state import cluster_of, console_of


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    return [Route("/cluster", _overview, methods=["GET"])]


async def _overview(request: Request) -> Response:
    cluster = cluster_of(request)
    return page(
        request,
        "cluster/overview.html",
        title="Cluster",
        brokers=await cluster.brokers(),
        name_servers=console_of(request).options.name_servers,
    )
