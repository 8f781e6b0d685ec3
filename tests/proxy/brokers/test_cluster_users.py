"""Users of a cluster before whose brokers a proxy stands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlake.auth.users import UserStatus
from mqlake.client.access import ClientAccess
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import Topic
from mqlake.grpc.messages import (
    Code,
    EndTransactionRequest,
    HeartbeatRequest,
    MessageType,
    QueryAssignmentRequest,
    TransactionResolution,
    TransactionSource,
)
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.programs.proxy import ProxyOptions, ProxyProgram
from mqlake.proxy.brokers.cluster import CallerChecks, ClusterBrokers
from mqlake.proxy.brokers.recent_values import AWAITED
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.storage.clock import SystemClock
from tests import simulated
from tests.auth.closed import CLOSED, INNER, ROOT
from tests.broker.running import next_port, running
from tests.proxy.clients.of_clients import OpenStream, consumer, known, producer
from tests.proxy.sending.messages import message, send
from tests.proxy.serving import Calls, named
from tests.proxy.test_gate import AS_ROOT, routed, sent, signed, user

OLD = AWAITED + 1


@asynccontextmanager
async def closed_cluster(
    path: Path, checked: CallerChecks = CallerChecks.PERMISSIONS, as_user: Any = INNER
) -> AsyncGenerator[Calls]:
    """Run a name server, a broker that authenticates, and a proxy before it."""
    port = next_port()
    names = f"127.0.0.1:{port}"
    settings: dict[str, Any] = {**CLOSED, "authorizationEnabled": "true", "namesrvAddr": names}
    settings["listenPort"] = next_port()
    own = NamesrvSettings(bind_address="127.0.0.1", listen_port=port)
    async with NameServer(own), running(path, **settings) as broker:
        broker.state.topics.put(Topic("T", 4, 4))
        access = ClientAccess(credentials=as_user)
        async with ClusterBrokers(names, access, checked) as brokers:
            service = GrpcService(brokers, ProxySettings(), SystemClock())
            calls = Calls(broker, service)
            try:
                yield calls
            finally:
                for function in calls.on_end:
                    await function()
                await service.stop()


def run(path: Path, test: Callable[[Calls], Awaitable[None]], **more: Any) -> None:
    async def served() -> None:
        async with closed_cluster(path, **more) as calls:
            await test(calls)

    simulated.run(served())


def test_a_signature_is_checked(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        assert await sent(calls, **AS_ROOT) == Code.OK
        for wrong in (
            {},
            signed(ROOT.access_key, "another password"),
            signed("nobody", ROOT.secret_key),
            signed(ROOT.access_key, ROOT.secret_key, signature="é"),
        ):
            assert await sent(calls, **wrong) == Code.UNAUTHORIZED, wrong
            assert await routed(calls, **wrong) == Code.UNAUTHORIZED, wrong

    run(tmp_path, test)


def test_each_user_may_do_what_the_broker_lets_it_do(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
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
        await known(calls, "p1", producer("T"), **sends)
        await known(calls, "c1", consumer("g", "T"), **reads)
        nobody: dict[str, Any] = {}
        for client_id, wanted, who in (
            ("p2", producer("T"), reads),
            ("c2", consumer("g", "T"), sends),
            ("c2", consumer("g", "T"), nobody),
            ("c2", consumer("other", "T"), reads),
        ):
            answer = await OpenStream(calls, client_id, **who).answer_to(wanted)
            assert answer.status.code == Code.UNAUTHORIZED
        beat = HeartbeatRequest(group=named("g"), client_type=3)
        assert (await calls.ask("Heartbeat", beat, "c1", **sends)).status.code == 40100
        assert (await calls.ask("Heartbeat", beat, "c1", **reads)).status.code == Code.OK

    run(tmp_path, test)


def test_a_transaction_is_ended_by_its_sender(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        calls.topic("T", "TRANSACTION")
        sends = user(calls, "sends", "Topic:T Pub")
        await known(calls, "p1", producer("T"), **sends)
        half = message("T", b"half", message_type=MessageType.TRANSACTION)
        found = await calls.ask("SendMessage", send(half), "p1", **sends)
        assert found.status.code == Code.OK, found.status.message
        request = EndTransactionRequest(
            topic=named("T"),
            message_id=found.entries[0].message_id,
            transaction_id=found.entries[0].transaction_id,
            resolution=TransactionResolution.COMMIT,
            source=TransactionSource.SOURCE_CLIENT,
        )
        none = user(calls, "none")
        assert (await calls.ask("EndTransaction", request, "p1", **none)).status.code == 40100
        ended = await calls.ask("EndTransaction", request, "p1", **sends)
        assert ended.status.code == Code.OK, ended.status.message

    run(tmp_path, test)


def test_who_has_no_rights_creates_no_group(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        none, nobody = user(calls, "none"), dict[str, Any]()
        for who in (nobody, none):
            request = QueryAssignmentRequest(topic=named("T"), group=named("evil"))
            found = await calls.ask("QueryAssignment", request, **who)
            assert found.status.code == Code.UNAUTHORIZED
            answer = await OpenStream(calls, "c1", **who).answer_to(consumer("evil", "T"))
            assert answer.status.code == Code.UNAUTHORIZED
        assert calls.broker.state.groups.get("evil") is None
        reads = user(calls, "reads", "Topic:T Sub", "Group:good Sub")
        request = QueryAssignmentRequest(topic=named("T"), group=named("good"))
        assert (await calls.ask("QueryAssignment", request, **reads)).status.code == Code.OK

    run(tmp_path, test)


def test_without_permissions_every_user_may_do_everything(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        none = user(calls, "none")
        off = user(calls, "off", status=UserStatus.DISABLE)
        assert await sent(calls, **none) == Code.OK
        nobody: dict[str, Any] = {}
        for wrong in (nobody, off):
            assert await sent(calls, **wrong) == Code.UNAUTHORIZED

    run(tmp_path, test, checked=CallerChecks.USERS)


def test_changes_of_a_user_count_after_a_while_and_a_new_password_after_a_second(
    tmp_path: Path,
) -> None:
    async def test(calls: Calls) -> None:
        sends = user(calls, "sends", "Topic:T Pub")
        assert await sent(calls, **sends) == Code.OK
        accounts = calls.broker.state.access.accounts
        assert accounts is not None
        accounts.adopt(accounts.state.without_user("sends"))
        await asyncio.sleep(OLD)
        assert await sent(calls, **sends) == Code.UNAUTHORIZED
        await asyncio.sleep(2)
        assert await sent(calls, **user(calls, "sends", "Topic:T Pub")) == Code.OK
        state = accounts.state
        old = state.users["sends"]
        changed = type(old)("sends", "a-new-password")
        accounts.adopt(state._replace(users={**state.users, "sends": changed}))
        await asyncio.sleep(2)
        assert await sent(calls, **signed("sends", "a-new-password")) == Code.OK
        assert await sent(calls, **sends) == Code.UNAUTHORIZED

    run(tmp_path, test)


def test_known_users_are_served_while_no_broker_tells_about_them(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        assert await routed(calls, **AS_ROOT) == Code.OK
        await calls.broker.broker.stop()
        await asyncio.sleep(OLD)
        # The name server has forgotten the broker, but the proxy not the user.
        assert await routed(calls, **AS_ROOT) == Code.TOPIC_NOT_FOUND
        assert await routed(calls, **signed("other", "password")) == Code.INTERNAL_SERVER_ERROR

    run(tmp_path, test)


def test_forged_names_of_one_address_leave_places_for_others(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        forged = [
            asyncio.create_task(sent(calls, peer="10.0.0.9:1", **signed(f"forged-{number}", "x")))
            for number in range(3000)
        ]
        await asyncio.sleep(0)
        assert await sent(calls, peer="10.0.0.8:1", **AS_ROOT) == Code.OK
        assert set(await asyncio.gather(*forged)) == {Code.UNAUTHORIZED, Code.TOO_MANY_REQUESTS}

    run(tmp_path, test)


def test_all_first_calls_are_served(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        users = [user(calls, f"user-{number}", "Topic:T Pub") for number in range(20)]
        found = await asyncio.gather(*(sent(calls, **each) for each in users))
        assert set(found) == {Code.OK}

    run(tmp_path, test)


def test_a_proxy_that_is_not_the_inner_user_says_so(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        found = await calls.ask("SendMessage", send(message()), **AS_ROOT)
        assert "inner user" in found.status.message

    run(tmp_path, test, as_user=ROOT)


@pytest.mark.parametrize(
    ("settings", "access", "text"),
    [
        (ProxySettings(authorization_enabled=True), None, "set authenticationEnabled too"),
        (ProxySettings(authentication_enabled=True), None, "MQLAKE_ACCESS_KEY"),
        (ProxySettings(authentication_enabled=True), ClientAccess(), "MQLAKE_ACCESS_KEY"),
    ],
)
def test_settings_with_which_nobody_could_call_are_refused_at_the_start(
    settings: ProxySettings, access: ClientAccess | None, text: str
) -> None:
    async def start() -> None:
        options = ProxyOptions(f"127.0.0.1:{next_port()}", port=0, access=access)
        async with ProxyProgram(options, settings):
            pass

    with pytest.raises(MqlakeError, match=text):
        asyncio.run(start())
