"""Whatever a client sends instead of a handshake, or after it: others are served, nothing stays."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from mqlake.programs.serve import loop_factory
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.frames import encode
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.tls.contexts import server_context
from mqlake.remoting.tls.options import ClientTls, ServerTls, TlsMode
from tests.remoting.serving import Raw, Served, serving
from tests.remoting.tls.raw_client import Forger, RawTls
from tests.tls.certificates import Authority
from tests.until import until

ECHO = 1


def echo(peer: Peer, asked: Command) -> Command:
    return response(asked, body=asked.body)


@pytest.fixture(scope="module")
def options(authority: Authority) -> ServerTls:
    files = authority.sign("server", "127.0.0.1")
    return ServerTls(mode=TlsMode.PERMISSIVE, cert=files.cert, key=files.key)


@pytest.fixture
def context(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.ca)


@asynccontextmanager
async def attacked(
    options: ServerTls, authority: Authority, limits: Limits | None = None
) -> AsyncIterator[Served]:
    """Serve one honest client, to whom nothing may happen."""
    honest = ClientTls(ca=authority.ca)
    async with serving({ECHO: echo}, limits, tls=options, client_tls=honest) as served:
        peer = await served.client.connect(served.address)
        yield served
        assert (await served.ask(request(ECHO, body=b"x"))).body == b"x"
        assert served.client.connected(served.address) is peer  # It was never closed.
        await until(lambda: len(served.server.peers) == 1)
        await until(lambda: served.used() == 0)


BAD_STARTS = {
    "an empty record": b"\x16\x03\x01\x00\x00",
    "garbage": b"\x16" + bytes(range(256)) * 8,
    "a huge record": b"\x16\x03\x01\xff\xff" + bytes(70_000),
    "a long record": b"\x16\x03\x01\x40\x00" + bytes(16_384),
    "an old version": b"\x16\x02\x00\x00\x05" + bytes(5),
    "a hello that is too long": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380),
    "another message": b"\x16\x03\x01\x00\x04\x0b\x00\x00\x00",
}


@pytest.mark.parametrize("data", BAD_STARTS.values(), ids=BAD_STARTS)
def test_what_is_no_handshake_is_refused(
    options: ServerTls, authority: Authority, data: bytes
) -> None:
    async def run() -> None:
        async with attacked(options, authority) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(data)
            with suppress(ConnectionError):
                await raw.writer.drain()
            if data != BAD_STARTS["an empty record"]:  # After which a handshake may follow.
                while await read(raw):  # An alert may come first.
                    pass
            await raw.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, loop_factory()], ids=["asyncio", "uvloop"]
)
def test_handshakes_that_end_early(
    options: ServerTls,
    authority: Authority,
    context: ssl.SSLContext,
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """At each byte of the first message, by a proper end and by a reset."""

    async def run() -> None:
        async with attacked(options, authority) as served:
            raws: list[Raw] = []
            size = 0
            for number in range(1_000):
                raw = await Raw.open(served.port)
                hello = RawTls(raw, context).hello()
                size = len(hello)
                if number >= size:
                    await raw.close()
                    break
                raw.writer.write(hello[: number + 1])
                raws.append(raw)
            assert len(raws) == size
            assert (await served.ask(request(ECHO, body=b"x"))).body == b"x"
            for number, raw in enumerate(raws):
                if number % 2:
                    raw.writer.transport.abort()
                await raw.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


def test_mutated_handshakes(
    options: ServerTls, authority: Authority, context: ssl.SSLContext
) -> None:
    chance = random.Random(39)

    async def attack(served: Served) -> None:
        raw = await Raw.open(served.port)
        data = bytearray(RawTls(raw, context).hello())
        for _ in range(chance.choice((1, 1, 2, 8, 64))):
            data[chance.randrange(1, len(data))] = chance.randrange(256)
        raw.writer.write(bytes(data) + chance.randbytes(chance.choice((0, 0, 5, 300))))
        raw.writer.write_eof()
        while await read(raw):
            pass
        await raw.close()

    async def run() -> None:
        async with attacked(options, authority) as served:
            for _ in range(20):
                await asyncio.gather(*(attack(served) for _ in range(20)))
            assert served.server.counts[ECHO] == 0

    asyncio.run(run())


def test_a_handshake_byte_by_byte_is_complete_in_the_end(
    options: ServerTls, authority: Authority, context: ssl.SSLContext
) -> None:
    async def run() -> None:
        async with attacked(options, authority) as served:
            client = RawTls(await Raw.open(served.port), context)
            await client.shake_hands(1)
            client.tls.write(encode(request(ECHO, body=b"slow")))
            await client.send(client.outgoing.read())
            client.incoming.write(await client.raw.reader.read(1 << 16))
            assert client.tls.read(1 << 16).endswith(b"slow")
            await client.raw.close()

    asyncio.run(run())


def test_a_changed_record_closes_the_connection(
    options: ServerTls,
    authority: Authority,
    context: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with attacked(options, authority) as served:
            client = RawTls(await Raw.open(served.port), context)
            await client.shake_hands()
            client.tls.write(encode(request(ECHO, body=b"slow")))
            data = bytearray(client.outgoing.read())
            data[-1] ^= 1
            await client.send(bytes(data))
            await client.raw.is_closed()
            await client.raw.close()
            assert served.server.counts[ECHO] == 0

    asyncio.run(run())
    assert "closed: TLS: decryption failed or bad record mac" in caplog.text


def test_clear_text_after_the_handshake_is_refused(
    options: ServerTls, authority: Authority, context: ssl.SSLContext
) -> None:
    async def run() -> None:
        async with attacked(options, authority) as served:
            client = RawTls(await Raw.open(served.port), context)
            await client.shake_hands()
            await client.send(encode(request(ECHO, body=b"plain")))
            await client.raw.is_closed()
            await client.raw.close()
            assert served.server.counts[ECHO] == 0

    asyncio.run(run())


def test_a_frame_that_tls_ends_in_the_middle_counts_for_nothing(
    options: ServerTls, authority: Authority, context: ssl.SSLContext
) -> None:
    async def run() -> None:
        async with attacked(options, authority) as served:
            client = RawTls(await Raw.open(served.port), context)
            await client.shake_hands()
            client.tls.write(encode(request(ECHO, body=b"half"))[:-1])
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.unwrap()
            await client.send(client.outgoing.read())
            assert await read(client.raw)  # The server ends TLS, too.
            assert not await read(client.raw)
            await client.raw.close()
            assert served.server.counts[ECHO] == 0

    asyncio.run(run())


def test_endless_changes_of_keys_close_the_connection(
    options: ServerTls,
    authority: Authority,
    context: ssl.SSLContext,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = str(tmp_path / "keys")

    async def run() -> None:
        async with attacked(options, authority) as served:
            client = RawTls(await Raw.open(served.port), context)
            await client.shake_hands()
            assert client.tls.cipher()[0] == "TLS_AES_256_GCM_SHA384"
            forger = Forger(tmp_path / "keys")
            # A few are allowed.
            await client.send(b"".join(forger.key_update() for _ in range(10)))
            await client.send(forger.record(encode(request(ECHO, body=b"x")), 23))
            await until(lambda: served.server.counts[ECHO] == 1)
            await client.send(b"".join(forger.key_update() for _ in range(10_000)))
            await client.raw.is_closed()
            await client.raw.close()

    asyncio.run(run())
    assert "bytes of TLS without data" in caplog.text


def test_renegotiation_is_off(options: ServerTls) -> None:
    assert server_context(options).options & ssl.OP_NO_RENEGOTIATION


def test_connections_without_a_handshake_count(
    options: ServerTls, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        limits = Limits(connections=50)
        async with attacked(options, authority, limits) as served:
            raws = [await Raw.open(served.port) for _ in range(60)]
            for raw in raws[::2]:
                raw.writer.write(b"\x16\x03")
            await until(lambda: "too many connections are open" in caplog.text)
            assert len(served.server.peers) <= 50
            for raw in raws:
                await raw.close()

    asyncio.run(run())


def test_a_frame_that_never_ends_is_found_by_the_memory_budget(
    options: ServerTls, authority: Authority, context: ssl.SSLContext
) -> None:
    async def run() -> None:
        limits = Limits(memory=1 << 20)
        async with attacked(options, authority, limits) as served:
            clients = [RawTls(await Raw.open(served.port), context) for _ in range(3)]
            for client in clients:
                await client.shake_hands()
            frame = encode(request(ECHO, body=bytes(2 << 20)))[:-1]
            for client in clients:
                client.tls.write(frame)
            sending = [
                asyncio.ensure_future(client.send(client.outgoing.read())) for client in clients
            ]
            await until(lambda: len(served.server.peers) < 4)
            assert served.used() <= 5 << 18
            for client in clients:
                client.raw.writer.transport.abort()
            await asyncio.gather(*sending)

    asyncio.run(run())


async def read(raw: Raw) -> bytes:
    """Return what arrives next; nothing if the connection is closed."""
    try:
        return await raw.reader.read(1 << 16)
    except ConnectionError:
        return b""
