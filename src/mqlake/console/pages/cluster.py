"""The page of the cluster: its brokers, their state, and what needs attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin.each_broker import BrokerFailure
from mqlake.console.cluster.aged import NO_ANSWER
from mqlake.console.cluster.brokers import broker_states, settings_of, status_of
from mqlake.console.cluster.view import SECONDS
from mqlake.console.commands import admin_line
from mqlake.console.page import page
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
        line=admin_line(request, "clusterList"),
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
    if not known:
        return page(
            request,
            "problem.html",
            title="No such broker",
            status=404,
            message=f"No broker is registered at {address[:100]!r}",
            advice="It may have moved, or stopped.",
        )
    facts: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    missing = ""
    try:
        facts = await status_of(view, address)
        settings = await settings_of(view, address, SECONDS)
    except NO_ANSWER as error:
        lacking = "its settings are missing" if facts else "its state and its settings are missing"
        missing = BrokerFailure(known[0], error).missing(lacking)
    return page(
        request,
        "cluster/broker.html",
        title=f"Broker {known[0]} at {address}",
        facts=sorted(facts.items()),
        settings=[
            (name, "(not shown)" if _is_secret(name) else value)
            for name, value in sorted(settings.items())
        ],
        missing=missing,
        line=admin_line(request, "brokerStatus", "-b", address),
    )
