"""The pages of messages: search, one message, live tail, and giving one to a group again."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import groups, messages, topics
from mqlake.admin.each_broker import BrokerFailure
from mqlake.admin.redelivery import (
    consume_directly,
    group_of_dead_letters,
    origin_of,
    resend,
)
from mqlake.console.access.changes import change, done, reading
from mqlake.console.access.forms import LARGE_BYTES, PostedForm
from mqlake.console.cluster import topics as topic_data
from mqlake.console.cluster.members import membership
from mqlake.console.cluster.view import ClusterView
from mqlake.console.commands import admin_line, cluster_line
from mqlake.console.messages import search
from mqlake.console.messages.bodies import body_start, body_view, decoded, plain_body
from mqlake.console.messages.schema_files import SchemaText, read_schema, schema_names
from mqlake.console.messages.search import FoundMessage, SearchResult, StoreTimes
from mqlake.console.messages.traces import trace_of
from mqlake.console.page import page, url
from mqlake.console.page_error import PageError
from mqlake.console.state import cluster_of, console_of
from mqlake.errors import MqlakeError
from mqlake.formats.record import Record

_WAYS: Final = {
    "time": "store time",
    "key": "key",
    "unique": "unique key (message id)",
    "id": "offset message id",
    "offset": "queue offset",
}
_SUGGESTED_AGE: Final = 60.0
_SUGGESTED: Final = 200
"""Topics that the field of a search suggests."""
_TRACKED: Final = 20
"""Groups whose offsets the page of a message asks for."""


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    return [
        Route("/messages", _search, methods=["GET"]),
        Route("/messages/tail", _tail, methods=["GET"]),
        Route("/messages/message", _message, methods=["GET"]),
        reading("/messages/decode", _decode, most=LARGE_BYTES),
        change("/messages/resend", _resend, "messages.resend"),
        change("/messages/consume", _consume, "messages.consume"),
    ]


class _Query:
    """What the address of a page asks for."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.topic = query.get("topic", "").strip()
        self.by = query.get("by", "time")
        self.key = query.get("key", "").strip()
        self.tags = query.get("tags", "").strip() or "*"
        self.broker = query.get("broker", "").strip()
        self.queue = _number(query.get("queue", ""), "Queue") or 0
        self.offset = _number(query.get("offset", ""), "Offset") or 0
        self.begin = _number(query.get("begin", ""), "From")
        self.end = _number(query.get("end", ""), "To")
        self.most = min(_number(query.get("most", "50"), "At most") or 50, search.MOST)

    @property
    def span(self) -> StoreTimes:
        return StoreTimes(self.begin, self.end)


def _number(text: str, label: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise PageError(f"{label} is {text[:50]!r}, and must be a number")
    return int(text)


async def _search(request: Request) -> Response:
    query = _Query(request)
    if query.by not in _WAYS:
        raise PageError(f"Messages cannot be found by {query.by[:50]!r}")
    wants = query.topic or (query.by == "id" and query.key)
    result = await _result(cluster_of(request), query) if wants else None
    later: dict[str, object] = {}
    if result and result.later is not None:
        most = min(2 * query.most, search.MOST) if result.wider else query.most
        later = {**request.query_params, "begin": result.later, "most": most}
    return page(
        request,
        "messages/search.html",
        title="Messages",
        query=query,
        ways=_WAYS,
        result=result,
        rows=[_row(each) for each in result.found] if result else [],
        topics=await _suggested(request),
        most=search.MOST,
        seconds=int(search.SECONDS),
        later=url("/messages", **later) if later else "",
        line=_line(request, query),
    )


async def _suggested(request: Request) -> list[str]:
    """Return topics to choose from; none if they are not known."""
    view = cluster_of(request)

    async def choose() -> list[str]:
        names = await topic_data.names(view)
        normal = (name for name in names if topic_data.kind_of(name) == "normal")
        return list(islice(normal, _SUGGESTED))

    try:
        # A list of all names is long: it is not looked through for each search.
        return await view.kept.get("suggested topics", _SUGGESTED_AGE, choose)
    except MqlakeError:
        return []


async def _result(view: ClusterView, query: _Query) -> SearchResult:
    """Return what a search finds, which says so if no broker answers."""
    silent: list[BrokerFailure] = []
    result = await view.known(_found(view, query), None, silent)
    missing = [each.missing("its messages were not searched") for each in silent]
    return result or SearchResult([], False, missing)


async def _found(view: ClusterView, query: _Query) -> SearchResult:
    match query.by:
        case "time":
            return await search.by_time(view, query.topic, query.tags, query.span, query.most)
        case "offset":
            broker = query.broker or (await view.admin.broker_of(query.topic)).name
            return await search.by_offset(
                view, query.topic, broker, query.queue, query.offset, query.most
            )
        case "id":
            return SearchResult([await search.by_id(view, query.key)], True, [])
        case _:
            if not query.key:
                raise PageError("The key is missing", "Fill in a key, and search again.")
            kind = "U" if query.by == "unique" else "K"
            return await search.by_key(view, query.topic, query.key, query.span, query.most, kind)


def _line(request: Request, query: _Query) -> str:
    topic = query.topic or "TOPIC"
    match query.by:
        case "key":
            return admin_line(request, "queryMsgByKey", "-t", topic, "-k", query.key or "KEY")
        case "unique":
            words = ("-t", topic, "-i", query.key or "ID")
            return admin_line(request, "queryMsgByUniqueKey", *words)
        case "id":
            return admin_line(request, "queryMsgById", "-i", query.key or "ID")
        case "offset":
            words = ("-t", topic, "-b", query.broker or "BROKER", "-i", query.queue)
            return admin_line(request, "queryMsgByOffset", *words, "-o", query.offset)
        case _:
            begin = () if query.begin is None else ("-b", query.begin)
            end = () if query.end is None else ("-e", query.end)
            words = ("-t", topic, "-c", query.most, *begin, *end)
            return admin_line(request, "printMsg", *words)


def _row(found: FoundMessage) -> dict[str, object]:
    record = found.record
    return {
        "at": record.store_timestamp,
        "broker": found.broker,
        "queue": record.queue_id,
        "offset": record.queue_offset,
        "keys": " ".join(record.keys),
        "tags": record.tags or "",
        "size": record.size,
        "start": body_start(record),
        "url": message_url(found),
    }


def message_url(found: FoundMessage) -> str:
    """Return the address of the page of a message."""
    record = found.record
    return url(
        "/messages/message",
        topic=record.topic,
        broker=found.broker,
        queue=record.queue_id,
        offset=record.queue_offset,
        id=identity(record),
    )


def identity(record: Record) -> str:
    """Return what distinguishes a message from another one that has its place later."""
    return record.unique_key or record.message_id


async def _tail(request: Request) -> Response:
    query = _Query(request)
    if not query.topic:
        raise PageError("The topic is missing", "Open the live tail from the page of a topic.")
    view, silent = cluster_of(request), list[BrokerFailure]()
    tail = search.tail(view, query.topic, query.tags, query.most)
    result = await view.known(tail, None, silent)
    if result is None:
        missing = [each.missing("its messages are missing") for each in silent]
        result = SearchResult([], False, missing)
    return page(
        request,
        "messages/tail.html",
        title=f"Live tail of {query.topic}",
        query=query,
        rows=[_row(each) for each in result.found],
        result=result,
        line=cluster_line(
            request, "tail", query.topic, "-n", console_of(request).options.name_servers
        ),
    )


class _MessagePlace(NamedTuple):
    """Where a message is, and which one it was there; empty for any."""

    topic: str
    broker: str
    queue: int
    offset: int
    identity: str


async def _one(view: ClusterView, place: _MessagePlace) -> FoundMessage:
    if place.broker not in await view.masters():
        raise PageError(
            f"Broker {place.broker[:100]!r} is not registered, or has no master",
            "Search for the message again.",
            404,
        )
    master = await view.admin.broker(place.broker)
    found = await messages.read(view.admin, master, place.topic, place.queue, place.offset, 1)
    record = found[0] if found else None
    if record is None or record.queue_offset != place.offset:
        raise PageError(
            f"There is no message at offset {place.offset:,} of queue {place.queue} on"
            f" {place.broker}",
            "It was deleted, or this is the end of the queue.",
            404,
        )
    if place.identity not in ("", identity(record)):
        raise PageError(
            "Another message is in this place now",
            "The topic was deleted and created again, or the broker's store was replaced.",
            409,
        )
    return FoundMessage(place.broker, record)


async def _message(request: Request) -> Response:
    query = _Query(request)
    view = cluster_of(request)
    wanted = request.query_params.get("id", "")
    place = _MessagePlace(query.topic, query.broker, query.queue, query.offset, wanted)
    found = await _one(view, place)
    return await _shown(request, found, "")


async def _shown(request: Request, found: FoundMessage, typed: str) -> Response:
    view, record = cluster_of(request), found.record
    message_id = identity(record)
    (steps, no_steps), tracks = await asyncio.gather(
        trace_of(view, message_id), _tracks(view, found)
    )
    return page(
        request,
        "messages/message.html",
        title=f"Message {message_id}",
        found=found,
        record=record,
        properties=sorted(record.properties.items()),
        body=await asyncio.to_thread(body_view, record),
        typed=typed,
        message_id=message_id,
        url_here=message_url(found),
        schemas=await asyncio.to_thread(schema_names, console_of(request).options.schemas),
        steps=steps,
        no_steps=no_steps,
        tracks=tracks,
        dead_group=group_of_dead_letters(record.topic),
        origin=origin_of(record),
        lines=_message_lines(request, found),
    )


def _message_lines(request: Request, found: FoundMessage) -> dict[str, str]:
    record = found.record
    group = group_of_dead_letters(record.topic) or "GROUP"
    by_id = ("-i", record.message_id)
    return {
        "show": admin_line(
            request,
            *("queryMsgByOffset", "-t", record.topic, "-b", found.broker),
            *("-i", record.queue_id, "-o", record.queue_offset),
        ),
        "resend": admin_line(request, "resendDeadLetter", *by_id),
        "consume": admin_line(request, "queryMsgById", *by_id, "-g", group),
    }


async def _tracks(view: ClusterView, found: FoundMessage) -> list[tuple[str, str]]:
    """Return what each group has done with a message."""
    record = found.record
    try:
        silent: list[BrokerFailure] = []
        names = await topics.groups(view.admin, record.topic, silent)
    except MqlakeError as error:
        return [("", f"not known: {error}")]
    states = await asyncio.gather(*(_track(view, name, found) for name in names[:_TRACKED]))
    rows = list(zip(names, states, strict=False))
    if len(names) > _TRACKED:
        rows.append((f"{len(names) - _TRACKED} more groups", "not asked"))
    return [*rows, *(("", each.missing("its groups may be missing")) for each in silent)]


async def _track(view: ClusterView, group: str, found: FoundMessage) -> str:
    record = found.record
    silent: list[BrokerFailure] = []
    try:
        progress = await groups.progress_on(view.admin, group, record.topic, silent)
    except MqlakeError as error:
        return f"unknown: {error}"
    for each in silent:
        if each.broker == found.broker:
            return f"unknown: {each.missing('its offsets are missing')}"
    for row in progress:
        if row.broker_name == found.broker and row.queue_id == record.queue_id:
            if row.consumer_offset > record.queue_offset:
                return "has consumed it, skipped it, or does not select its tag"
            before = record.queue_offset - row.consumer_offset
            where = f"{before:,} messages are before it" if before else "it is the next one"
            return f"has not consumed it: {where}"
    return "has no offset in its queue"


def _place(form: PostedForm) -> _MessagePlace:
    return _MessagePlace(
        form.required("topic", "Topic"),
        form.text("broker"),
        form.number("queue", "Queue", 0, 2**31),
        form.number("offset", "Offset", 0, 2**63),
        form.text("id"),
    )


async def _decode(request: Request, form: PostedForm) -> Response:
    found = await _one(cluster_of(request), _place(form))
    if chosen := form.text("chosen"):
        directory = console_of(request).options.schemas
        schema = await asyncio.to_thread(read_schema, directory, chosen)
    else:
        schema = SchemaText(form.text("form"), form.required("schema", "Schema"))
    typed = await asyncio.to_thread(
        decoded,
        plain_body(found.record)[0],
        schema.form,
        schema.text,
        form.text("message").strip(),
        framed=form.is_set("framed"),
    )
    return await _shown(request, found, typed)


async def _resend(request: Request, form: PostedForm) -> Response:
    view = cluster_of(request)
    found = await _one(view, _place(form))
    group = group_of_dead_letters(found.record.topic)
    if not group or not origin_of(found.record):
        raise PageError(
            "This message is no dead letter, or does not say which topic it came from",
            "Let one consumer consume it instead.",
        )
    sent = await resend(view.admin, found.broker, found.record)
    notice = f"A copy was sent to group {group} as {sent.msg_id}. The dead letter stays."
    return done(request, message_url(found), notice)


async def _consume(request: Request, form: PostedForm) -> Response:
    view, group = cluster_of(request), form.required("group", "Group")
    found = await _one(view, _place(form))
    members = (await membership(view, group)).members
    if not members:
        raise PageError(f"Group {group} has no member that could consume it", status=409)
    wanted = form.text("client").strip()
    member = next((each for each in members if wanted in ("", each.client_id)), None)
    if member is None:
        raise PageError(f"Group {group} has no member {wanted[:200]!r}", status=404)
    address = (await view.masters()).get(found.broker, "")
    result = await consume_directly(view.admin, address, group, member.client_id, found.record)
    remark = f": {result.remark}" if result.remark else ""
    notice = (
        f"{member.client_id} answered {result.consume_result} after"
        f" {result.spent_time_mills:,} ms{remark}. Offsets have not changed."
    )
    return done(request, message_url(found), notice)
