"""The pages of consumer groups: why one lags, its members, and changes of its offsets."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.admin import groups, offsets, topics
from mqlake.admin.each_broker import BrokerFailure
from mqlake.client.cluster import MasterBroker
from mqlake.console.access.changes import change, done
from mqlake.console.access.forms import PostedForm
from mqlake.console.cluster import groups as group_data
from mqlake.console.cluster.diagnosis import diagnosis, owners, queue_of
from mqlake.console.commands import admin_line
from mqlake.console.page import listing, page, url
from mqlake.console.page_error import PageError
from mqlake.console.state import cluster_of
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.naming import dlq_topic, group_fault, retry_topic

_MEMBERS: Final = 50
"""Members on one page."""
_LATEST: Final = 2**53
_PATIENCE: Final = 1.0
"""Seconds that the list waits for lags; without them it shows names."""


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    return [
        Route("/groups", _list, methods=["GET"]),
        Route("/groups/new", _new, methods=["GET"]),
        Route("/groups/group", _group, methods=["GET"]),
        change("/groups/save", _save, "groups.save"),
        change("/groups/delete", _delete, "groups.delete"),
        change("/groups/reset", _reset, "groups.reset"),
        change("/groups/skip", _skip, "groups.skip"),
        change("/groups/copy", _copy, "groups.copy"),
    ]


async def _list(request: Request) -> Response:
    view, query = cluster_of(request), request.query_params
    text, order = query.get("q", "").strip(), query.get("order", "lag")
    kind = query.get("kind", "normal")
    found = await group_data.group_names(view)
    lags = await view.background("lags", lambda: group_data.all_lags(view)).latest(_PATIENCE)
    known = lags.value.rows if lags.value else {}
    rows = [
        known.get(name) or group_data.GroupRow(name)
        for name in found.names
        if text.lower() in name.lower() and kind in ("all", group_data.kind_of(name))
    ]
    if order == "lag":
        rows.sort(key=lambda row: -(row.lag or 0))
    return page(
        request,
        "groups/list.html",
        title="Consumer groups",
        listing=listing(request, rows),
        missing=[*found.missing, *(lags.value.missing if lags.value else ())],
        lags=lags,
        q=text,
        order=order,
        kind=kind,
        kinds=("all", *group_data.KINDS),
        line=admin_line(request, "consumerProgress"),
    )


async def _new(request: Request) -> Response:
    clusters = await cluster_of(request).clusters()
    cluster = clusters[0] if clusters else "CLUSTER"
    return page(
        request,
        "groups/new.html",
        title="New group",
        clusters=clusters,
        settings=SubscriptionGroup(),
        line=_update_line(request, cluster, "GROUP", SubscriptionGroup()),
    )


async def _group(request: Request) -> Response:
    view, group = cluster_of(request), request.query_params.get("group", "")
    only = request.query_params.get("topic", "")
    state = await group_data.group_state(view, group)
    settings = await group_data.config_of(view, group)
    members = state.membership.members
    is_known = state.missing or state.membership.unknown
    if not settings and not members and not state.progress and not is_known:
        raise PageError(
            f"Group {group[:255]!r} does not exist",
            "It has no settings, no members and no offsets on any broker.",
            404,
        )
    owned = owners(members)
    rows = [
        (row, [each.client_id for each in owned.get(queue_of(row), [])])
        for row in sorted(state.progress, key=lambda row: -row.lag)  # Where it lags comes first.
        if only in ("", row.topic)
    ]
    clusters = await view.clusters()
    first = next(iter(settings.values()), SubscriptionGroup(group_name=group))
    read = sorted({row.topic for row in state.progress})
    return page(
        request,
        "groups/group.html",
        title=group,
        group=group,
        state=state,
        reasons=diagnosis(state),
        listing=listing(request, rows),
        topics=read,
        only=only,
        members=listing(request, members, _MEMBERS, "members"),
        subscriptions=sorted(state.membership.subscriptions.items()),
        settings=sorted(settings.items()),
        first=first,
        clusters=clusters,
        retry=retry_topic(group),
        dead=dlq_topic(group),
        dead_letters=await _stored(request, dlq_topic(group)),
        retries=sum(row.lag for row in state.progress if row.topic.startswith(RETRY_PREFIX)),
        lines=_lines(request, group, read[0] if read else "TOPIC")
        | _settings_lines(request, clusters[0] if clusters else "CLUSTER", group, first),
    )


def _lines(request: Request, group: str, topic: str) -> dict[str, str]:
    of_topic = ("-g", group, "-t", topic)
    return {
        "progress": admin_line(request, "consumerProgress", "-g", group),
        "members": admin_line(request, "consumerConnection", "-g", group),
        "reset": admin_line(request, "resetOffsetByTime", *of_topic, "-s", "now"),
        "skip": admin_line(request, "skipAccumulatedMessage", *of_topic),
        "copy": admin_line(request, "cloneGroupOffset", *("-s", group, "-d", "GROUP", "-o")),
    }


def _settings_lines(
    request: Request, cluster: str, group: str, settings: SubscriptionGroup
) -> dict[str, str]:
    return {
        "update": _update_line(request, cluster, group, settings),
        "delete": admin_line(request, "deleteSubGroup", "-c", cluster, "-g", group),
    }


def _update_line(request: Request, cluster: str, group: str, settings: SubscriptionGroup) -> str:
    """Return the command for what the form of the settings shows."""
    words = ["-c", cluster, "-g", group]
    words += ["-s" if settings.consume_enable else "-S"]
    words += ["-r", str(settings.retry_max_times), "-q", str(settings.retry_queue_nums)]
    if settings.consume_message_orderly:
        words.append("-o")
    return admin_line(request, "updateSubGroup", *words)


async def _stored(request: Request, topic: str) -> int | None:
    """Return how many messages a topic has; 0 if it does not exist, None if that is unknown."""
    try:
        silent: list[BrokerFailure] = []
        queues = await topics.status(cluster_of(request).admin, topic, silent)
    except MqlakeError as error:
        is_missing = isinstance(error, RemotingError) and error.code == ResponseCode.TOPIC_NOT_EXIST
        return 0 if is_missing else None
    return None if silent else sum(each.max_offset - each.min_offset for each in queues)


def _back(request: Request, group: str, notice: str) -> Response:
    return done(request, url("/groups/group", group=group), notice)


async def _save(request: Request, form: PostedForm) -> Response:
    """Create a group, or change one. What the form does not show is left as it is."""
    view, group = cluster_of(request), form.required("group", "Name")
    if fault := group_fault(group):
        raise PageError(fault)
    cluster = form.required("cluster", "Cluster")
    view.kept.forget()
    known = await group_data.configs(view, group)
    if form.is_set("new") and any(isinstance(each, SubscriptionGroup) for each in known.values()):
        raise PageError(f"Group {group} exists already", "Change it on its own page.", 409)
    retries = form.number("retries", "Redeliveries", -1, 1000)
    queues = form.number("queues", "Retry queues", 0, 1024)

    async def save(master: MasterBroker) -> None:
        old = known.get(master.name, SubscriptionGroup(group_name=group))
        if isinstance(old, BrokerFailure):
            if old.is_silent:
                raise old.error
            old = SubscriptionGroup(group_name=group)
        wanted = msgspec.structs.replace(
            old,
            consume_enable=form.is_set("enable"),
            consume_message_orderly=form.is_set("orderly"),
            retry_max_times=retries,
            retry_queue_nums=queues,
        )
        await groups.update(view.admin, wanted, None, master.address)

    brokers = await view.on_masters(cluster, save)
    return _back(request, group, f"{group} was saved on {brokers}.")


async def _delete(request: Request, form: PostedForm) -> Response:
    view, group = cluster_of(request), form.required("group", "Group")
    if form.text("typed").strip() != group:
        raise PageError(
            "The name that you typed is not the group's", "Nothing was deleted. Type it again."
        )
    cluster = form.required("cluster", "Cluster")
    found = await groups.delete(
        view.admin, group, cluster, None, clean_offset=form.is_set("offsets")
    )
    brokers = ", ".join(each.broker_name for each in found)
    return done(request, "/groups", f"{group} was deleted from {brokers}.")


async def _reset(request: Request, form: PostedForm) -> Response:
    group, topic = form.required("group", "Group"), form.required("topic", "Topic")
    at = form.number("time", "Time", 0, _LATEST)
    found = await offsets.reset(cluster_of(request).admin, group, topic, at)
    return _back(request, group, f"Offsets of {len(found)} queues of {topic} were reset.")


async def _skip(request: Request, form: PostedForm) -> Response:
    group, topic = form.required("group", "Group"), form.required("topic", "Topic")
    found = await offsets.reset(cluster_of(request).admin, group, topic, offsets.TO_THE_END)
    return _back(request, group, f"The backlog in {len(found)} queues of {topic} was skipped.")


async def _copy(request: Request, form: PostedForm) -> Response:
    group, target = form.required("group", "Group"), form.required("target", "Target group")
    topic = form.text("topic").strip() or None
    offline = form.is_set("offline")
    found = await offsets.clone(cluster_of(request).admin, group, target, topic, offline=offline)
    brokers = ", ".join(each.broker_name for each in found)
    notice = f"The offsets of {group} were copied to {target} on {brokers}."
    return _back(request, target, notice)
