"""A closed name server: who may register brokers, ask for routes, and manage users."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqlake.admin import acls, users
from mqlake.admin.admin import Admin
from mqlake.auth.metadata import PATH
from mqlake.auth.needs import OnCluster
from mqlake.auth.rules import NAME_SERVER
from mqlake.errors import StoreError
from mqlake.formats.config.topics import Topic
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import FIXED, NamesrvSettings, as_properties, make_namesrv_settings
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, oneway, request
from mqlake.protocol.signature import Credentials, signed
from mqlake.remoting.client import RemotingClient
from tests.auth.closed import CLOSED, INNER, ROOT, SECRETS
from tests.broker.running import PATIENCE, running
from tests.until import until

ON = {
    "authorizationEnabled": "true",
    **{name: text for name, text in CLOSED.items() if name != "brokerClusterName"},
}
ME = Credentials("me", "my-password-3")
OK, REFUSED = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION
ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


class Names:
    """A name server, and clients of several users."""

    def __init__(self, server: NameServer) -> None:
        self.server, self.address = server, f"127.0.0.1:{server.port}"
        self._clients: dict[Credentials | None, RemotingClient] = {}

    async def ask(
        self, user: Credentials | None, code: int, fields: dict[str, str], body: bytes = b""
    ) -> Command:
        client = self._clients.setdefault(
            user, RemotingClient(connect_timeout=PATIENCE, credentials=user)
        )
        return await client.request(self.address, request(code, fields, body), PATIENCE)

    async def code(self, user: Credentials | None, code: int, **fields: str) -> int:
        return (await self.ask(user, code, fields)).code

    async def grant(self, resource: str, *actions: str) -> None:
        async with Admin(self.address, credentials=ROOT) as admin:
            if not await users.get(admin, ME.access_key, None, self.address):
                user = UserInfo(ME.access_key, ME.secret_key)
                await users.create(admin, user, None, self.address)
            grant = acls.Grant([resource], list(actions))
            await acls.create(admin, f"User:{ME.access_key}", grant, None, self.address)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


@asynccontextmanager
async def closed(path: Path, **more: str) -> AsyncGenerator[Names]:
    settings = {"listenPort": 0, "authConfigPath": str(path / "names"), **ON, **more}
    async with NameServer(settings) as server:
        names = Names(server)
        try:
            yield names
        finally:
            await names.close()


def test_brokers_register_and_clients_find_what_they_may_use(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            closed(tmp_path) as names,
            running(tmp_path / "broker", namesrvAddr=names.address, **CLOSED) as broker,  # pyright: ignore[reportArgumentType]
        ):
            broker.state.topics.put(Topic("Orders", 4, 4))
            while await names.code(ROOT, ROUTE, topic="Orders") != OK:
                await broker.state.names.told()
            assert await names.code(None, ROUTE, topic="Orders") == REFUSED
            assert await names.code(ME, ROUTE, topic="Orders") == REFUSED
            await names.grant("Topic:Orders", "Pub")
            assert await names.code(ME, ROUTE, topic="Orders") == OK
            answer = await names.ask(ME, ROUTE, {"topic": "Others"})
            assert answer.code == REFUSED
            assert "Topic:Others" in (answer.remark or "")
            assert await names.code(ROOT, ROUTE, topic="Others") == ResponseCode.TOPIC_NOT_EXIST

    asyncio.run(run())


def test_a_broker_without_credentials_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            closed(tmp_path) as names,
            running(tmp_path / "broker", namesrvAddr=names.address) as broker,
        ):
            await broker.state.names.told()
            answer = await names.ask(ROOT, RequestCode.GET_BROKER_CLUSTER_INFO, {})
            assert answer.code == OK
            assert b"brokerAddrs" not in bytes(answer.body)

    asyncio.run(run())


@pytest.mark.parametrize("code", NAME_SERVER, ids=lambda code: RequestCode(code).name)
def test_every_request_needs_its_permission(tmp_path: Path, code: int) -> None:
    (part,) = NAME_SERVER[code]
    resource = "Cluster:*" if isinstance(part, OnCluster) else "Topic:T"
    actions = {action.value for action in part.actions}  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    async def run() -> None:
        async with closed(tmp_path) as names:
            fields = {"topic": "T"}
            await names.grant("Topic:other", "All")
            await names.grant("Cluster:DefaultCluster", "All")
            for user in (None, Credentials("nobody", "x"), Credentials("root", "x"), ME):
                assert await names.code(user, code, **fields) == REFUSED
            await names.grant(resource, "Create")
            assert await names.code(ME, code, **fields) == REFUSED
            await names.grant(resource, min(actions))  # pyright: ignore[reportUnknownArgumentType]
            answer = await names.ask(ME, code, fields)
            assert "no permission to access" not in (answer.remark or "")

    asyncio.run(run())


def test_one_way_requests_are_checked_too(tmp_path: Path) -> None:
    def change() -> Command:
        return oneway(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true")

    async def run() -> None:
        async with closed(tmp_path) as names:
            client = RemotingClient(connect_timeout=PATIENCE)
            for command in (change(), signed(change(), Credentials("root", "guess"))):
                await client.oneway(names.address, command)
            # An answer over the same connection comes after what was sent before.
            await client.request(names.address, request(ROUTE, {"topic": "T"}), PATIENCE)
            assert not names.server.settings.order_message_enable
            right = RemotingClient(connect_timeout=PATIENCE, credentials=ROOT)
            await right.oneway(names.address, change())
            await until(lambda: names.server.settings.order_message_enable)
            await client.close()
            await right.close()

    asyncio.run(run())


def test_a_whitelist_opens_routes(tmp_path: Path) -> None:
    code = str(int(ROUTE))

    async def run() -> None:
        lists = {"authenticationWhitelist": code, "authorizationWhitelist": code}
        async with closed(tmp_path, **lists) as names:
            assert await names.code(None, ROUTE, topic="T") == ResponseCode.TOPIC_NOT_EXIST
            assert await names.code(None, RequestCode.GET_BROKER_CLUSTER_INFO) == REFUSED

    asyncio.run(run())


def test_users_outlive_a_restart_and_their_file_is_private(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path) as names:
            await names.grant("Topic:T", "Sub")
        assert (tmp_path / "names" / PATH).stat().st_mode & 0o777 == 0o600
        async with closed(tmp_path) as names:
            assert await names.code(ME, ROUTE, topic="T") == ResponseCode.TOPIC_NOT_EXIST

    asyncio.run(run())


def test_passwords_are_not_shown_and_survive_a_change(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"

    async def run() -> None:
        async with closed(tmp_path, configStorePath=str(path)) as names:
            change = b"orderMessageEnable=true"
            answer = await names.ask(ROOT, RequestCode.UPDATE_NAMESRV_CONFIG, {}, change)
            assert answer.code == OK
            assert names.server.settings.inner_credentials == INNER
            shown = await names.ask(ROOT, RequestCode.GET_NAMESRV_CONFIG, {})
            listed = await names.ask(ROOT, RequestCode.AUTH_LIST_USER, {})
            texts = [bytes(shown.body).decode(), path.read_text(), repr(names.server.settings)]
            assert not [each for secret in SECRETS for each in texts if secret in each]
            assert ROOT.secret_key not in bytes(listed.body).decode()

    asyncio.run(run())


@pytest.mark.parametrize(
    "name", [name for name in as_properties(NamesrvSettings()) if "auth" in name.lower()]
)
def test_nobody_opens_a_running_name_server(tmp_path: Path, name: str) -> None:
    assert name in FIXED

    async def run() -> None:
        async with closed(tmp_path) as names:
            body = f"{name}=false".encode()
            answer = await names.ask(ROOT, RequestCode.UPDATE_NAMESRV_CONFIG, {}, body)
            assert (answer.code, "black list" in (answer.remark or "")) == (REFUSED, True)
            assert await names.code(None, ROUTE, topic="T") == REFUSED

    asyncio.run(run())


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(StoreError, match="authorizationEnabled"):
        make_namesrv_settings({"authorizationEnabled": "true"})
    with pytest.raises(StoreError, match="initAuthenticationUser") as caught:
        make_namesrv_settings({"initAuthenticationUser": '{"password": "my-secret-9"}'})
    assert "my-secret-9" not in str(caught.value)


def test_a_name_server_without_users_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there are no users"):
        NameServer({"authenticationEnabled": "true", "authConfigPath": str(tmp_path)})


def test_an_open_name_server_has_no_users(tmp_path: Path) -> None:
    async def run() -> None:
        settings = {"listenPort": 0, "authConfigPath": str(tmp_path / "x")}
        async with NameServer(settings) as server:
            names = Names(server)
            body = json.dumps({"password": "x"}).encode()
            answer = await names.ask(None, RequestCode.AUTH_CREATE_USER, {"username": "u"}, body)
            assert "authentication is off" in (answer.remark or "")
            await names.close()
        assert not (tmp_path / "x").exists()

    asyncio.run(run())


@pytest.mark.parametrize("is_guarded", [True, False])
def test_signs_notices_only_if_not_everybody_may_register(tmp_path: Path, is_guarded: bool) -> None:
    """A signature serves other requests, too: whoever is sent one could use it."""

    async def run() -> None:
        more = {} if is_guarded else {"authorizationEnabled": "false"}
        settings = {"listenPort": 0, "authConfigPath": str(tmp_path / "names"), **ON, **more}
        async with NameServer(settings) as server:
            assert (server._notices._credentials is not None) is is_guarded

    asyncio.run(run())
