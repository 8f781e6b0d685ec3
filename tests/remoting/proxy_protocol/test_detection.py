"""Connections through a proxy: whose they are, who may say so, and what else may arrive."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

import pytest

from mqlake.programs.serve import loop_factory
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import encode
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.quotas.quota import Quota
from mqlake.remoting.quotas.quotas import Quotas
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.tls.contexts import client_context
from mqlake.remoting.tls.options import ClientTls, ServerTls, TlsMode
from mqlake.store.bounds import networks
from tests.remoting.proxy_protocol.headers import any_header, binary, line
from tests.remoting.serving import Raw, serving
from tests.remoting.tls.raw_client import RawTls
from tests.tls.certificates import Authority
from tests.until import until

ECHO = 1
HERE = "127.0.0.0/8"
PLAIN = ServerTls(mode=TlsMode.DISABLED)
HEADERS = {
    "version 1": line("192.0.2.7", 4000),
    "version 2": binary("192.0.2.7", 4000),
    "version 2 with more": binary("192.0.2.7", 4000, extra=bytes(60_000)),
}


def echo(peer: Peer, asked: Command) -> Command:
    return response(asked, body=asked.body, remark=peer.address)


def frame(body: bytes = b"") -> bytes:
    return encode(request(ECHO, body=body))


async def ended(raw: Raw) -> bool:
    """Return whether the server closes a connection without an answer."""
    is_closed = await raw.is_closed()
    await raw.close()
    return is_closed


LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, loop_factory()], ids=["asyncio", "uvloop"]
)
MODES = pytest.mark.parametrize("tls", [PLAIN, ServerTls(mode=TlsMode.PERMISSIVE)])


@LOOPS
@MODES
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_names_the_client(
    loop: Callable[[], asyncio.AbstractEventLoop], tls: ServerTls, header: bytes
) -> None:
    async def run() -> None:
        async with serving({ECHO: echo}, tls=tls, proxies=HERE) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(header + frame(b"a") + frame(bytes(1 << 20)) + frame(b"c"))
            answers = [await raw.command() for _ in range(3)]
            assert [len(answer.body) for answer in answers] == [1, 1 << 20, 1]
            assert {answer.remark for answer in answers} == {"192.0.2.7:4000"}
            assert [peer.address for peer in served.server.peers] == ["192.0.2.7:4000"]
            await raw.close()
            await until(lambda: not served.server.peers)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@MODES
def test_the_bytes_may_arrive_in_any_pieces(tls: ServerTls) -> None:
    rng = random.Random(1)

    async def run() -> None:
        async with serving({ECHO: echo}, tls=tls, proxies=HERE) as served:
            for _ in range(30):
                header, client = any_header(rng)
                data, raw = header + frame(b"x"), await Raw.open(served.port)
                step = rng.choice((1, 2, 5, 17)) if len(data) < 500 else 7000
                for start in range(0, len(data), step):
                    raw.writer.write(data[start : start + step])
                    await raw.writer.drain()
                    await asyncio.sleep(0)
                assert (await raw.command()).remark == client
                await raw.close()

    asyncio.run(run())


def test_without_a_header_the_address_is_the_socket_s() -> None:
    async def run() -> None:
        async with serving({ECHO: echo}, tls=PLAIN, proxies=HERE) as served:
            raw = await Raw.open(served.port)
            own = "{}:{}".format(*raw.writer.get_extra_info("sockname"))
            raw.writer.write(frame())
            assert (await raw.command()).remark == own
            check = await Raw.open(served.port)
            check.writer.write(b"PROXY UNKNOWN\r\n" + frame())
            own = "{}:{}".format(*check.writer.get_extra_info("sockname"))
            assert (await check.command()).remark == own
            for each in (raw, check):
                await each.close()

    asyncio.run(run())


@pytest.mark.parametrize("proxies", ["", "10.0.0.0/8;::1"])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_nobody_else_may_claim_an_address(
    proxies: str, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving({ECHO: echo}, proxies=proxies) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(header + frame())
            assert await ended(raw)
            await until(lambda: not served.server.peers)

    with caplog.at_level(logging.WARNING, "mqlake.remoting"):
        asyncio.run(run())
    assert "proxyProtocolAddresses" in caplog.text


def test_tls_follows_the_header(authority: Authority) -> None:
    files = authority.sign("server", "127.0.0.1")
    tls = ServerTls(mode=TlsMode.ENFORCING, cert=files.cert, key=files.key)

    async def run() -> None:
        context = client_context(ClientTls(ca=authority.ca))
        async with serving({ECHO: echo}, tls=tls, proxies=HERE) as served:
            raw = await Raw.open(served.port)
            client = RawTls(raw, context)
            raw.writer.write(HEADERS["version 2"] + client.hello())
            await client.shake_hands()
            client.tls.write(frame(b"secret"))
            raw.writer.write(client.outgoing.read())
            answer = await client.command()
            assert (answer.body, answer.remark) == (b"secret", "192.0.2.7:4000")
            (peer,) = served.server.peers
            assert peer.is_secure
            await raw.close()
            plain = await Raw.open(served.port)
            plain.writer.write(HEADERS["version 1"] + frame())
            assert await ended(plain)

    asyncio.run(run())


BAD = {
    "no header after all": b"PROXY TCP4 nonsense\r\n",
    "a line without an end": b"PROXY TCP4 " + b"1" * 200,
    "an unknown version": b"\r\n\r\n\x00\r\nQUIT\n\x51\x11\x00\x0c" + bytes(12),
    "a second header": HEADERS["version 1"] * 2 + frame(),
    "a header of another version after it": HEADERS["version 2"] + HEADERS["version 1"],
}


@MODES
@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_wrong_headers_end_the_connection(data: bytes, tls: ServerTls) -> None:
    async def run() -> None:
        async with serving({ECHO: echo}, tls=tls, proxies=HERE) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(data)
            assert await ended(raw)
            await until(lambda: not served.server.peers)
            assert served.used() == 0

    asyncio.run(run())


@pytest.mark.parametrize("part", [b"P", b"\r\n\r\n", binary("192.0.2.7", 1, extra=bytes(9))[:-1]])
def test_a_header_must_be_complete_in_time(part: bytes) -> None:
    async def run() -> None:
        limits = Limits(handshake=0.05)
        async with serving({ECHO: echo}, limits, tls=PLAIN, proxies=HERE) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(part)
            assert await ended(raw)
            await until(lambda: not served.server.peers)

    asyncio.run(run())


def test_limits_count_the_clients_and_not_the_proxy() -> None:
    def refuse(reason: str, text: str) -> RemotingError:
        return RemotingError(1, f"[{reason}]{text}")

    async def run() -> None:
        quotas = Quotas(refuse)
        quotas.set(Quota(connections=2), Quota(), ())
        server = RemotingServer(
            [Route(ECHO, echo)], tls=PLAIN, quotas=quotas, proxies=networks(HERE)
        )
        port = await server.start("127.0.0.1", 0)
        try:
            # Connections that have yet to name their client, as after a proxy's restart.
            pending = [await Raw.open(port) for _ in range(6)]
            await until(lambda: len(server.peers) == len(pending))
            for number, raw in enumerate(pending):
                raw.writer.write(binary(f"192.0.2.{number % 3}", 1000 + number) + frame())
            names = {(await raw.command()).remark for raw in pending}
            assert len(names) == len(pending)
            third = await Raw.open(port)
            third.writer.write(binary("192.0.2.0", 1) + frame())
            assert await ended(third)
            await pending[0].close()
            await until(lambda: len(server.peers) == len(pending) - 1)
            again = await Raw.open(port)
            again.writer.write(binary("192.0.2.0", 1) + frame())
            assert (await again.command()).remark == "192.0.2.0:1"
            for raw in (*pending[1:], again):
                await raw.close()
        finally:
            await server.stop()

    asyncio.run(run())
