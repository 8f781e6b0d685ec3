"""The members of a consumer group, and what each reports about itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mqlake.admin.each_broker import BrokerFailure
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError
from mqlake.formats.config import convert
from mqlake.protocol.bodies.connections import ClientConnection, ConsumerConnections
from mqlake.protocol.bodies.heartbeat import Subscription
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import read_object, read_queue_table
from mqlake.protocol.bodies.running_info import ConsumeStatus, ProcessQueueInfo
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ConsumerConnectionsHeader, ConsumerHeader

_ASKED: Final = 20
"""Members that are asked for what they do."""
_PATIENCE: Final = 3.0
_AGE: Final = 3.0


class ReportedMember(NamedTuple):
    """A member.

    Attributes:
        broker: the address of a broker that it is connected to.
        subscriptions: expressions by topic; None if it was not asked, or did not answer.
        queues: the queues that are assigned to it.
        failing: messages a second that its handler fails.
        problem: why it reports nothing, empty if it does.
    """

    client_id: str
    address: str
    language: str
    version: int
    broker: str
    subscriptions: Mapping[str, str] | None = None
    queues: Mapping[MessageQueue, ProcessQueueInfo] = {}
    failing: float = 0.0
    problem: str = ""


class ConnectedMembers(NamedTuple):
    """Who consumes for a group now.

    Attributes:
        members: by client id.
        subscriptions: expressions by topic, as brokers know them.
        model: CLUSTERING or BROADCASTING; empty without members.
        consume_type: CONSUME_ACTIVELY, CONSUME_PASSIVELY or CONSUME_POP; empty without members.
        all_asked: whether every member was asked what it does.
        unknown: why brokers did not name the members that are connected to them.
    """

    members: list[ReportedMember]
    subscriptions: Mapping[str, str]
    model: str
    consume_type: str
    all_asked: bool
    unknown: Sequence[str] = ()


async def membership(view: ClusterView, group: str) -> ConnectedMembers:
    """Return the members of a group. The first ones are asked what they do."""
    return await view.kept.get(("members", group), _AGE, lambda: _fetch(view, group))


async def _fetch(view: ClusterView, group: str) -> ConnectedMembers:
    names = await view.masters()
    masters = list(names.values())
    answers = await asyncio.gather(*(_connected(view, *each, group) for each in names.items()))
    known: dict[str, tuple[ClientConnection, str]] = {}
    subscriptions: dict[str, str] = {}
    model = consume_type = ""
    unknown: list[str] = []
    for broker, answer in zip(masters, answers, strict=True):
        if isinstance(answer, str):
            unknown.append(answer)
            continue
        for client in answer.connection_set:
            known.setdefault(client.client_id, (client, broker))
        subscriptions |= {
            name: expression_text(each) for name, each in answer.subscription_table.items()
        }
        model, consume_type = answer.message_model or model, answer.consume_type or consume_type
    clients = [known[client_id] for client_id in sorted(known)]
    asked = await asyncio.gather(
        *(_described(view, group, client, broker) for client, broker in clients[:_ASKED])
    )
    others = [_member(client, broker) for client, broker in clients[_ASKED:]]
    return ConnectedMembers(
        [*asked, *others], subscriptions, model, consume_type, not others, unknown
    )


def expression_text(subscription: Subscription) -> str:
    """Return an expression, with its type if it does not select tags."""
    kind = subscription.expression_type or "TAG"
    return subscription.sub_string if kind == "TAG" else f"{kind}: {subscription.sub_string}"


async def _connected(
    view: ClusterView, name: str, address: str, group: str
) -> ConsumerConnections | str:
    """Return who is connected to a broker, or why that is unknown."""
    header = ConsumerConnectionsHeader(consumer_group=group)
    try:
        answer = await view.admin.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        return decode_answer(ConsumerConnections, answer.body)
    except MqlakeError as error:
        if isinstance(error, RemotingError) and error.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return ConsumerConnections()
        return BrokerFailure(name, error).missing("its members are missing")


def _member(client: ClientConnection, broker: str) -> ReportedMember:
    return ReportedMember(
        client.client_id, client.client_addr, client.language, client.version, broker
    )


async def _described(
    view: ClusterView, group: str, client: ClientConnection, broker: str
) -> ReportedMember:
    member = _member(client, broker)
    header = ConsumerHeader(consumer_group=group, client_id=client.client_id)
    try:
        async with asyncio.timeout(_PATIENCE):
            code = RequestCode.GET_CONSUMER_RUNNING_INFO
            # The broker asks the client, so its silence is not the broker's.
            answer = await view.admin.ask(broker, code, header, seconds=_PATIENCE + 1)
        return _with_report(member, read_object(answer.body))
    except TimeoutError:
        return member._replace(problem=f"It did not report within {_PATIENCE:.0f} s.")
    except MqlakeError as error:
        return member._replace(problem=str(error))


def _with_report(member: ReportedMember, report: Mapping[str, object]) -> ReportedMember:
    """Return a member with what it reports, which may be anything.

    Raises:
        MqlakeError: the report is malformed.
    """
    subscribed = convert(report.get("subscriptionSet") or [], list[Subscription])
    statuses = convert(report.get("statusTable") or {}, dict[str, ConsumeStatus])
    return member._replace(
        subscriptions={each.topic: expression_text(each) for each in subscribed},
        queues=read_queue_table(report.get("mqTable") or {}, ProcessQueueInfo),
        failing=sum(each.consume_failed_tps for each in statuses.values()),
    )
