"""The pages of topics: list, create, change, delete them, and send a test message."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import messages, topics
from mqlake.client.cluster import MasterBroker
from mqlake.console.access.changes import change, done
from mqlake.console.access.forms import LARGE_BYTES, PostedForm
from mqlake.console.cluster import topics as topic_data
from mqlake.console.commands import admin_line
from mqlake.console.page import listing, page, url
from mqlake.console.page_error import PageError
from mqlake.console.state import cluster_of
from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.naming import is_for_clients, topic_fault

_TYPES: Final = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED")
_MOST_QUEUES: Final = 1024


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    return [
        Route("/topics", _list, methods=["GET"]),
        Route("/topics/new", _new, methods=["GET"]),
        Route("/topics/topic", _topic, methods=["GET"]),
        change("/topics/save", _save, "topics.save"),
        change("/topics/delete", _delete, "topics.delete"),
        change("/topics/send", _send, "topics.send", most=LARGE_BYTES),
    ]


async def _list(request: Request) -> Response:
    view, query = cluster_of(request), request.query_params
    text, kind = query.get("q", "").strip(), query.get("kind", "normal")
    names = [
        name
        for name in await topic_data.names(view)
        if text.lower() in name.lower() and kind in ("all", topic_data.kind_of(name))
    ]
    shown = listing(request, names)
    tables = await topic_data.tables(view)
    return page(
        request,
        "topics/list.html",
        title="Topics",
        listing=shown,
        rows=topic_data.rows(shown.items, tables),
        missing=[each.missing("its topics' settings are missing") for each in tables.missing],
        q=text,
        kind=kind,
        kinds=("all", *topic_data.KINDS),
        line=admin_line(request, "topicList"),
    )


async def _new(request: Request) -> Response:
    view = cluster_of(request)
    clusters = await view.clusters()
    settings = Topic(read_queue_nums=8, write_queue_nums=8)
    return page(
        request,
        "topics/new.html",
        title="New topic",
        clusters=clusters,
        types=_TYPES,
        settings=settings,
        line=_update_line(request, clusters[0] if clusters else "CLUSTER", "TOPIC", settings),
    )


def _update_line(request: Request, cluster: str, topic: str, settings: Topic) -> str:
    """Return the command for what the form of the settings shows."""
    words = ["-c", cluster, "-t", topic, "-r", settings.read_queue_nums]
    words += ["-w", settings.write_queue_nums, "-p", settings.perm]
    if settings.order:
        words.append("-o")
    return admin_line(request, "updateTopic", *words)


async def _topic(request: Request) -> Response:
    view, topic = cluster_of(request), request.query_params.get("topic", "")
    try:
        route = await view.admin.route(topic)
    except RemotingError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        raise PageError(
            f"Topic {topic[:255]!r} does not exist", "No broker has registered it.", 404
        ) from None
    state = await topic_data.topic_state(view, topic)
    shown = listing(request, state.queues)
    tables = (await topic_data.tables(view)).by_broker
    settings = {name: table[topic] for name, table in tables.items() if topic in table}
    first = next(iter(settings.values()), Topic(topic_name=topic))
    clusters = sorted({data.cluster for data in route.broker_datas})
    cluster = clusters[0] if clusters else ""
    return page(
        request,
        "topics/topic.html",
        title=topic,
        topic=topic,
        kind=topic_data.kind_of(topic),
        listing=shown,
        messages=sum(each.max_offset - each.min_offset for each in state.queues),
        last=max((each.last_updated for each in state.queues), default=0),
        settings=[
            (name, each, topic_data.permission_text(each.perm), sorted(each.attributes.items()))
            for name, each in settings.items()
        ],
        first=first,
        state=state,
        clusters=clusters,
        can_send=is_for_clients(topic),
        types=_TYPES,
        lines={
            "status": admin_line(request, "topicStatus", "-t", topic),
            "update": _update_line(request, cluster, topic, first),
            "delete": admin_line(request, "deleteTopic", "-c", cluster, "-t", topic),
            "send": admin_line(request, "sendMessage", "-t", topic, "-p", "hello"),
        },
    )


async def _save(request: Request, form: PostedForm) -> Response:
    """Create a topic, or change one."""
    view, topic = cluster_of(request), form.required("topic", "Name")
    if fault := topic_fault(topic):
        raise PageError(fault)
    cluster = form.required("cluster", "Cluster")
    shown = Topic(
        topic_name=topic,
        read_queue_nums=form.number("read", "Read queues", 1, _MOST_QUEUES),
        write_queue_nums=form.number("write", "Write queues", 1, _MOST_QUEUES),
        perm=form.number("permission", "Permission", 0, 7),
        order=form.is_set("order"),
    )
    is_new = form.is_set("new")
    if is_new and topic in await topics.names(view.admin):
        raise PageError(f"Topic {topic} exists already", "Change it on its own page.", 409)
    kind = form.text("type")
    if kind and kind not in _TYPES:
        raise PageError(f"A topic cannot be of the type {kind[:50]!r}")
    attributes = f"+{MESSAGE_TYPE}={kind}" if kind and is_new else ""
    view.kept.forget()
    tables = await topic_data.tables(view)
    unknown = {each.broker: each.error for each in tables.missing if each.is_silent}

    async def save(master: MasterBroker) -> None:
        # What the form does not show is left as it is.
        if master.name in unknown:
            raise unknown[master.name]
        old = tables.by_broker.get(master.name, {}).get(topic, shown)
        wanted = msgspec.structs.replace(
            shown, topic_filter_type=old.topic_filter_type, topic_sys_flag=old.topic_sys_flag
        )
        await topics.update(view.admin, wanted, None, master.address, attributes)

    brokers = await view.on_masters(cluster, save)
    what = "created" if is_new else "changed"
    return done(request, url("/topics/topic", topic=topic), f"{topic} was {what} on {brokers}.")


async def _delete(request: Request, form: PostedForm) -> Response:
    view, topic = cluster_of(request), form.required("topic", "Topic")
    if form.text("typed").strip() != topic:
        raise PageError(
            "The name that you typed is not the topic's", "Nothing was deleted. Type it again."
        )
    found = await topics.delete(view.admin, topic, form.required("cluster", "Cluster"))
    brokers = ", ".join(each.broker_name for each in found)
    return done(request, "/topics", f"{topic} was deleted from {brokers}.")


async def _send(request: Request, form: PostedForm) -> Response:
    view, topic = cluster_of(request), form.required("topic", "Topic")
    sent = await messages.send(
        view.admin,
        topic,
        form.text("body").encode(),
        keys=form.text("keys").strip() or None,
        tags=form.text("tags").strip() or None,
    )
    where = f"queue {sent.queue_id}, queue offset {sent.queue_offset}"
    notice = f"The message was stored in {where}. Its id is {sent.msg_id}."
    return done(request, url("/topics/topic", topic=topic), notice)
