"""The page of the cluster: its brokers, how they do, and what needs attention."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import brokers
from mqlake.console.cluster.brokers import broker_states
from mqlake.console.page import page, shell_line
from mqlake.console.state import cluster_of, console_of

_SECRETS: Final = ("password", "secret", "credential", "authenticationuser", "token", "header")


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    return [
        Route("/cluster", _overview, methods=["GET"]),
        Route("/cluster/broker", _broker, methods=["GET"]),
    ]


async def _overview(request: Request) -> Response:
    view = cluster_of(request)
    states, rates = await broker_states(view), view.rates
    names = console_of(request).options.name_servers
    plot = {
        "series": [{"label": "in a second"}, {"label": "out a second"}],
        "values": rates.columns,
    }
    return page(
        request,
        "cluster/overview.html",
        title="Cluster",
        brokers=states,
        attention=[(each, warned) for each in states for warned in each.warnings],
        in_rate=sum(each.in_rate for each in states if each.role == "master"),
        out_rate=sum(each.out_rate for each in states),
        plot=msgspec.json.encode(plot).decode() if rates.columns else "",
        name_servers=names,
        line=shell_line(["mqlake", "admin", "clusterList", "-n", names]),
    )


def _is_secret(name: str) -> bool:
    """Return whether a setting of a broker may be a password: some brokers return them."""
    lowered = name.lower()
    return any(word in lowered for word in _SECRETS)


async def _broker(request: Request) -> Response:
    view, address = cluster_of(request), request.query_params.get("address", "")
    known = [
        data.broker_name for data in await view.brokers() if address in data.broker_addrs.values()
    ]
    names = console_of(request).options.name_servers
    if not known:
        return page(
            request,
            "problem.html",
            title="No such broker",
            status=404,
            message=f"No broker is registered at {address[:100]!r}",
            advice="It may have moved, or stopped.",
        )
    return page(
        request,
        "cluster/broker.html",
        title=f"Broker {known[0]} at {address}",
        facts=sorted((await brokers.status(view.admin, address)).items()),
        settings=[
            (name, "(not shown)" if _is_secret(name) else value)
            for name, value in sorted((await brokers.config(view.admin, address)).items())
        ],
        line=shell_line(["mqlake", "admin", "brokerStatus", "-n", names, "-b", address]),
    )
