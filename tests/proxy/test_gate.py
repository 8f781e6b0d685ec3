"""Who calls, and what the users of the broker may do."""

from __future__ import annotations

import hmac
from hashlib import sha1
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from mqlake.auth.policies import Acl, Action, Decision, Entry, PolicyType
from mqlake.auth.resource import Resource
from mqlake.auth.users import User, UserStatus
from mqlake.grpc.messages import (
    Code,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    QueryRouteRequest,
    RecallMessageRequest,
)
from mqlake.proxy.gate import AUTHORIZATION, CLIENT_ID, DATE, LANGUAGE
from mqlake.remoting.errors import ConnectionFailedError
from tests import simulated
from tests.auth.closed import CLOSED, ROOT
from tests.auth.test_plain import ADMIN, ME, home
from tests.proxy.clients.of_clients import OpenStream, consumer, known, producer
from tests.proxy.sending.messages import message, send
from tests.proxy.serving import Calls, named, serving

NOW = "20261128T101112Z"


def signed(name: str, password: str, date: str | None = NOW, **changes: str) -> dict[str, Any]:
    """Return the metadata of a call that a user has signed."""
    right = hmac.digest(password.encode(), (date or "").encode(), sha1).hex()
    signature = changes.get("signature", right)
    text = changes.get(
        "text",
        f"MQv2-HMAC-SHA1 Credential={name}/region, SignedHeaders=x-mq-date-time, "
        f"Signature={signature}",
    )
    metadata = {AUTHORIZATION: text} | ({DATE: date} if date is not None else {})
    return {"metadata": metadata}


AS_ROOT = signed(ROOT.access_key, ROOT.secret_key)


def user(
    calls: Calls,
    name: str,
    *granted: str,
    status: UserStatus = UserStatus.ENABLE,
    source: str | None = None,
) -> Any:
    """Create a user with permissions such as "Topic:T Pub"; return the metadata of its calls.

    Args:
        source: the only host from which it has them.
    """
    sources = () if source is None else (ip_network(source),)
    accounts = calls.broker.state.access.accounts
    assert accounts is not None
    entries: list[Entry] = []
    for each in granted:
        resource, _, action = each.rpartition(" ")
        parsed = Resource.parse(resource)
        assert parsed is not None
        entries.append(Entry(parsed, frozenset({Action(action)}), sources, Decision.ALLOW))
    password = f"password-of-{name}"
    state = accounts.state.with_user(User(name, password, user_status=status), 100)
    if entries:
        acl = Acl().merged(PolicyType.CUSTOM, entries)
        state = state._replace(acls={**state.acls, name: acl})
    accounts.adopt(state)
    return signed(name, password)


async def sent(calls: Calls, **more: Any) -> int:
    return int((await calls.ask("SendMessage", send(message()), **more)).status.code)


async def routed(calls: Calls, **more: Any) -> int:
    request = QueryRouteRequest(topic=named("T"))
    return int((await calls.ask("QueryRoute", request, **more)).status.code)


def test_a_signature_is_checked(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **CLOSED) as calls:
            calls.topic("T")
            name, password = ROOT.access_key, ROOT.secret_key
            assert await sent(calls, **AS_ROOT) == Code.OK
            upper = hmac.digest(password.encode(), NOW.encode(), sha1).hex().upper()
            assert await sent(calls, **signed(name, password, signature=upper)) == Code.OK
            for wrong in (
                {},
                signed(name, "another password"),
                signed("nobody", password),
                signed(name, password, date=None),
                signed(name, password, date=""),
                signed(name, password, signature=""),
                signed(name, password, signature="é"),
                signed(name, password, text="MQv2-HMAC-SHA1"),
                signed(name, password, text=""),
                signed(name, password, text="Credential=root"),
                signed(name, password, text="x " + "a=b, " * 1000),
            ):
                assert await sent(calls, **wrong) == Code.UNAUTHORIZED, wrong
                assert await routed(calls, **wrong) == Code.UNAUTHORIZED, wrong

    simulated.run(run())


def test_a_signature_of_another_date_does_not_count(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **CLOSED) as calls:
            calls.topic("T")
            metadata = {**AS_ROOT["metadata"], DATE: "20261128T101113Z"}
            assert await sent(calls, metadata=metadata) == Code.UNAUTHORIZED

    simulated.run(run())


def test_a_disabled_user_may_do_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **CLOSED) as calls:
            calls.topic("T")
            disabled = user(calls, "off", "Topic:T Pub", status=UserStatus.DISABLE)
            assert await sent(calls, **disabled) == Code.UNAUTHORIZED

    simulated.run(run())


def test_what_a_user_may_do_follows_from_the_requests_that_a_call_becomes(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        settings = CLOSED | {"authorizationEnabled": "true"}
        async with serving(tmp_path, **settings) as calls:
            calls.topic("T")
            sends = user(calls, "sends", "Topic:T Pub")
            reads = user(calls, "reads", "Topic:T Sub", "Group:g Sub")
            none = user(calls, "none")
            for who, may_send, may_route in (
                (sends, Code.OK, Code.OK),
                (reads, Code.UNAUTHORIZED, Code.OK),
                (none, Code.UNAUTHORIZED, Code.UNAUTHORIZED),
            ):
                assert await sent(calls, **who) == may_send
                assert await routed(calls, **who) == may_route

    simulated.run(run())


def test_who_may_not_send_does_not_learn_which_topics_exist(tmp_path: Path) -> None:
    async def run() -> None:
        settings = CLOSED | {"authorizationEnabled": "true"}
        async with serving(tmp_path, **settings) as calls:
            calls.topic("T", "FIFO")
            reads = user(calls, "reads", "Topic:T Sub")
            for who in ({}, reads):
                for topic in ("T", "missing"):
                    found = await calls.ask("SendMessage", send(message(topic)), **who)
                    assert found.status.code == Code.UNAUTHORIZED
                    request = RecallMessageRequest(topic=named(topic), recall_handle="x")
                    found = await calls.ask("RecallMessage", request, **who)
                    assert found.status.code == Code.UNAUTHORIZED

    simulated.run(run())


def test_a_client_registers_only_for_what_its_user_may_do(tmp_path: Path) -> None:
    """A producer of a topic is asked about its transactions, and gets their messages."""

    async def run() -> None:
        settings = CLOSED | {"authorizationEnabled": "true"}
        async with serving(tmp_path, **settings) as calls:
            calls.topic("T")
            sends = user(calls, "sends", "Topic:T Pub")
            reads = user(calls, "reads", "Topic:T Sub", "Group:g Sub")
            await known(calls, "p1", producer("T"), **sends)
            await known(calls, "c1", consumer("g", "T"), **reads)
            for client_id, wanted, who in (
                ("p2", producer("T"), reads),
                ("c2", consumer("g", "T"), sends),
                ("c2", consumer("g", "T"), {}),
                ("c2", consumer("other", "T"), reads),
            ):
                stream = OpenStream(calls, client_id, **who)
                answer = await stream.answer_to(wanted)
                assert answer.status.code == Code.UNAUTHORIZED
                assert calls.service.state.clients.get(client_id) is None
            assert list(calls.broker.state.clients.producers) == ["T"]
            request = NotifyClientTerminationRequest(group=named("g"))
            found = await calls.ask("NotifyClientTermination", request, "c1", **sends)
            assert found.status.code == Code.UNAUTHORIZED
            beat = HeartbeatRequest(group=named("g"), client_type=3)
            assert (await calls.ask("Heartbeat", beat, "c1", **sends)).status.code == 40100
            assert (await calls.ask("Heartbeat", beat, "c1", **reads)).status.code == Code.OK
            found = await calls.ask("NotifyClientTermination", request, "c1", **reads)
            assert found.status.code == Code.OK

    simulated.run(run())


def test_a_client_id_belongs_to_the_user_who_came_with_it(tmp_path: Path) -> None:
    """Brokers' questions about the transactions of one user must not reach another one."""

    async def run() -> None:
        async with serving(tmp_path, **CLOSED) as calls:
            mine, other = user(calls, "mine"), user(calls, "other")
            await known(calls, "p1", producer("T"), **mine)
            stream = OpenStream(calls, "p1", **other)
            answer = await stream.answer_to(producer("U"))
            assert answer.status.code == Code.UNAUTHORIZED
            assert calls.service.state.clients.known("p1").stream is not None
            beat, end = HeartbeatRequest(client_type=1), NotifyClientTerminationRequest()
            for method, request in (("Heartbeat", beat), ("NotifyClientTermination", end)):
                for who, code in ((other, Code.UNAUTHORIZED), ({}, 40100), (mine, Code.OK)):
                    found = await calls.ask(method, request, "p1", **who)
                    assert found.status.code == code, (method, who)

    simulated.run(run())


def test_acl_1_decides_as_for_other_clients(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {"aclEnable": "true", "rocketmqHome": str(home(tmp_path / "acl"))}
        async with serving(tmp_path / "store", **settings) as calls:
            calls.topic("topicA")
            calls.topic("topicB")
            me = signed(ME.access_key, ME.secret_key)
            for topic, who, code in (
                ("topicB", me, Code.OK),
                ("topicA", me, Code.UNAUTHORIZED),
                ("topicA", signed(ADMIN.access_key, ADMIN.secret_key), Code.OK),
                ("topicB", signed(ME.access_key, "another secret"), Code.UNAUTHORIZED),
                ("topicB", {}, Code.UNAUTHORIZED),
            ):
                found = await calls.ask("SendMessage", send(message(topic)), **who)
                assert found.status.code == code, (topic, found.status.message)

    simulated.run(run())


def test_the_limits_of_an_address_count_calls(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, maxRequestRatePerAddress=10) as calls:
            calls.topic("T")
            codes = [await sent(calls) for _ in range(20)]
            assert codes.count(Code.OK) == 10
            assert codes.count(Code.TOO_MANY_REQUESTS) == 10
            assert await sent(calls, peer="10.0.0.9:1") == Code.OK

    simulated.run(run())


def test_the_connections_of_an_address_count_clients(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, maxConnectionsPerAddress=3) as calls:
            for number in range(3):
                await known(calls, f"p{number}", producer("T"), peer="10.0.0.1:1")
            with pytest.raises(Exception, match="no further connection") as refused:
                await known(calls, "p3", producer("T"), peer="10.0.0.1:1")
            assert not isinstance(refused.value, ConnectionFailedError)
            await known(calls, "other", producer("T"), peer="10.0.0.2:1")

    simulated.run(run())


@pytest.mark.parametrize(
    ("language", "noted"),
    [("PYTHON", "PYTHON"), ("HTTP", "HTTP"), ("Klingon" * 100, "OTHER"), ("rust", "RUST")],
)
def test_the_language_of_a_client_is_noted(tmp_path: Path, language: str, noted: str) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            await known(calls, "p1", producer("T"), metadata={LANGUAGE: language})
            (client,) = calls.broker.state.clients.producers["T"]
            assert client.language == noted

    simulated.run(run())


@pytest.mark.parametrize("client_id", ["a\nb", "a\x00", "", "  ", "x" * 1025])
def test_an_id_that_would_spoil_the_log_is_none(tmp_path: Path, client_id: str) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            metadata = {CLIENT_ID: client_id}
            assert await routed(calls, metadata=metadata) == Code.CLIENT_ID_REQUIRED

    simulated.run(run())
