"""Clients with and without TLS, and behind proxies, use one port."""

from __future__ import annotations

import asyncio
import ssl
from ipaddress import ip_network
from pathlib import Path

import grpc.aio
import pytest

from mqlake.grpc.call import Call
from mqlake.grpc.messages import HeartbeatRequest, HeartbeatResponse
from mqlake.remoting.tls.options import ServerTls, TlsMode
from mqlake.remoting.tls.self_signed import SelfSigned
from tests.grpc.raw_client import call as raw_call
from tests.grpc.raw_client import raw_client
from tests.grpc.serving import Client, connected, serving, with_handler
from tests.until import until

PERMISSIVE = ServerTls(mode=TlsMode.PERMISSIVE)


async def certificate_of(port: int) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    layer = writer.get_extra_info("ssl_object")
    assert layer.selected_alpn_protocol() == "h2"
    writer.close()
    return ssl.DER_cert_to_PEM_cert(layer.getpeercert(binary_form=True))


def test_one_port_serves_clients_with_and_without_tls() -> None:
    async def scenario() -> None:
        async with serving(tls=PERMISSIVE) as port, connected(port) as plain:
            assert (await plain.Heartbeat(HeartbeatRequest())).status.code
            credentials = grpc.ssl_channel_credentials((await certificate_of(port)).encode())
            options = [("grpc.ssl_target_name_override", "localhost")]
            channel = grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options)
            async with channel:
                assert (await Client(channel).Heartbeat(HeartbeatRequest())).status.code

    asyncio.run(scenario())


def test_a_server_that_enforces_tls_closes_other_connections() -> None:
    async def scenario() -> None:
        enforcing = ServerTls(mode=TlsMode.ENFORCING)
        async with serving(tls=enforcing) as port, connected(port) as plain:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await plain.Heartbeat(HeartbeatRequest())
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    asyncio.run(scenario())


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

        def create() -> None:
            with SelfSigned() as (new_cert, new_key):
                for old, new in ((cert, new_cert), (key, new_key)):
                    old.write_bytes(Path(new).read_bytes())

        create()
        options = ServerTls(mode=TlsMode.PERMISSIVE, cert=str(cert), key=str(key))
        async with serving(tls=options) as port:
            first = await certificate_of(port)
            create()

            async def has_changed() -> bool:
                return await certificate_of(port) != first

            await until(has_changed)

    asyncio.run(scenario())


def test_a_proxy_names_the_client() -> None:
    async def scenario() -> None:
        peers = list[str]()

        async def note(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
            peers.append(call.peer)
            return HeartbeatResponse()

        methods = with_handler("Heartbeat", note)
        before = b"PROXY TCP4 10.1.2.3 127.0.0.1 4567 8081\r\n"
        proxies = [ip_network("127.0.0.0/8")]
        async with (
            serving(methods, proxies=proxies) as port,
            raw_client(port, before=before) as client,
        ):
            await client.send(raw_call(1, "Heartbeat", HeartbeatRequest()))
            assert (await client.status())[0] == "0"
        assert peers == ["10.1.2.3:4567"]

    asyncio.run(scenario())


def test_nobody_else_may_claim_an_address() -> None:
    async def scenario() -> None:
        before = b"PROXY TCP4 10.1.2.3 127.0.0.1 4567 8081\r\n"
        async with serving() as port, raw_client(port, before=before) as client:
            assert await client.frame() is None

    asyncio.run(scenario())
