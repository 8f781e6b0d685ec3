"""The pages of messages that wait: delayed ones, half messages, popped ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import messages
from mqlake.admin.each_broker import BrokerFailure
from mqlake.client.cluster import MasterBroker
from mqlake.console.access.changes import change, check_role, confirm_role, done, needs
from mqlake.console.access.forms import PostedForm
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.cluster.aged import NO_ANSWER
from mqlake.console.cluster.brokers import settings_of
from mqlake.console.cluster.view import ClusterView
from mqlake.console.commands import admin_line
from mqlake.console.page import listing, page, url
from mqlake.console.page_error import PageError
from mqlake.console.pages.store_files import store_of
from mqlake.console.state import cluster_of, console_of
from mqlake.console.waiting.found import WaitingMessage, WaitingMessages, delayed, half
from mqlake.console.waiting.sources import BrokerSource, DirectorySource, WaitingSource
from mqlake.errors import FormatError
from mqlake.formats.consume_queue import (
    DEFAULT_DELAY_LEVELS,
    DEFAULT_DELAY_LEVELS_TEXT,
    parse_delay_levels,
)
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.storage.clock import SystemClock

KINDS: Final = (
    ("Delayed", "/delayed"),
    ("Transactions", "/delayed/half"),
    ("Popped", "/delayed/popped"),
)
Search = Callable[[WaitingSource, Sequence[int]], Awaitable[WaitingMessages]]

_SECONDS: Final = 3.0
_RECALL: Final = "recallMessageEnable"
_LEVELS: Final = "messageDelayLevel"


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    viewer = ConsoleRole.VIEWER
    return [
        Route("/delayed", needs(viewer, _delayed), methods=["GET"]),
        Route("/delayed/half", needs(viewer, _half), methods=["GET"]),
        Route("/delayed/popped", needs(viewer, _popped), methods=["GET"]),
        change("/delayed/recall", _recall, "messages.recall"),
    ]


async def _delayed(request: Request) -> Response:
    return await _show(request, "delayed/delayed.html", _search_delayed)


async def _half(request: Request) -> Response:
    return await _show(request, "delayed/half.html", _search_half)


async def _popped(request: Request) -> Response:
    return await _show(request, "delayed/popped.html", _search_delayed)


async def _search_delayed(source: WaitingSource, levels: Sequence[int]) -> WaitingMessages:
    """Return what waits for its time, or for an acknowledgement."""
    return await delayed(source, levels, SystemClock().milliseconds())


async def _search_half(source: WaitingSource, levels: Sequence[int]) -> WaitingMessages:
    """Return half messages whose transactions have not ended."""
    del levels
    return await half(source)


async def _settings(cluster: ClusterView, broker: MasterBroker) -> Mapping[str, str]:
    """Return a broker's settings; none if the visitor may not see them."""
    try:
        return await settings_of(cluster, broker.address)
    except RemotingError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        return {}


async def _of_broker(cluster: ClusterView, broker: MasterBroker, search: Search) -> WaitingMessages:
    config = await _settings(cluster, broker)
    try:
        levels = parse_delay_levels(config.get(_LEVELS, DEFAULT_DELAY_LEVELS_TEXT))
    except FormatError:
        levels = ()
    return await search(BrokerSource(cluster.admin, broker), levels)


async def _of_directory(path: Path, search: Search) -> WaitingMessages:
    source = await asyncio.to_thread(DirectorySource, path, "")
    try:
        return await search(source, DEFAULT_DELAY_LEVELS)
    finally:
        source.close()


async def _show(request: Request, template: str, search: Search) -> Response:
    cluster = cluster_of(request)
    store = request.query_params.get("store", "")
    names = sorted(await cluster.masters())
    name = ""
    settings: Mapping[str, str] = {}
    if store:
        await confirm_role(request)
        check_role(request, ConsoleRole.ADMIN)
        path = store_of(request, store)
        find = partial(_of_directory, path, search)
        found = await cluster.kept.get((search, path), _SECONDS, find)
    else:
        name = request.query_params.get("broker", "") or (names[0] if names else "")
        if name not in names:
            raise PageError(
                f"There is no master of broker {name[:200]}" if name else "There is no broker",
                "The name server knows no such broker now.",
                404,
            )
        broker = await cluster.admin.broker(name)
        find = partial(_of_broker, cluster, broker, search)
        try:
            found = await cluster.kept.get((search, name), _SECONDS, find)
            settings = await _settings(cluster, broker)
        except NO_ANSWER as error:
            # The page lets the visitor choose another broker.
            text = BrokerFailure(name, error).missing("its messages are missing")
            found = WaitingMessages([], [], [text])
    can_recall = settings.get(_RECALL, "").strip().lower() == "true"
    return _listed(request, template, found, names=names, broker=name, can_recall=can_recall)


def _listed(
    request: Request, template: str, found: WaitingMessages, *, broker: str, **values: Any
) -> Response:
    asked = request.query_params
    topic, group = asked.get("topic", "").strip(), asked.get("group", "").strip()
    store = asked.get("store", "") or None
    matching = [
        each
        for each in found.messages
        if topic in each.topic and (not group or group in each.group)
    ]
    popped = [each for each in found.popped if topic in each.topic and group in each.group]
    return page(
        request,
        template,
        title="Messages that wait",
        kinds=[(each, url(at, broker=broker or None, store=store)) for each, at in KINDS],
        tab=request.url.path,
        broker=broker,
        store=store or "",
        stores=[str(each) for each in console_of(request).options.stores],
        topic=topic,
        group=group,
        now=SystemClock().milliseconds(),
        messages=listing(request, matching),
        recall_line=partial(_recall_line, request, broker),
        popped=listing(request, popped),
        stopped=found.stopped,
        **values,
    )


def _recall_line(request: Request, broker: str, message: WaitingMessage) -> str:
    words = ("-t", message.topic, "-b", broker, "--recallHandle", message.handle or "HANDLE")
    return admin_line(request, "recallMessage", *words)


async def _recall(request: Request, form: PostedForm) -> Response:
    topic, handle = form.required("topic", "The topic"), form.required("handle", "The handle")
    cluster = cluster_of(request)
    broker = await cluster.admin.broker(form.required("broker", "The broker"))
    await messages.recall(cluster.admin, topic, broker.name, handle)
    return done(
        request, url("/delayed", broker=broker.name), f"A message of topic {topic} was recalled"
    )
