"""Servers and clients with TLS, over real connections: who reaches whom, and what arrives."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from mqlake.errors import MqlakeError
from mqlake.programs.serve import loop_factory
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.frames import encode
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError
from mqlake.remoting.limits import Limits
from mqlake.remoting.tls.options import ClientAuth, ClientTls, ServerTls, TlsMode, Verify
from mqlake.remoting.tls.watched import WatchedContext
from tests.remoting.serving import Raw, serving
from tests.tls.certificates import Authority
from tests.until import until

ASK, PUSH = RequestCode.HEART_BEAT, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED


def echo(peer: Peer, asked: Command) -> Command:
    return response(asked, body=asked.body, remark=str(peer.is_secure))


HANDLERS = {ASK: echo}


@pytest.fixture(scope="module")
def server(authority: Authority) -> ServerTls:
    files = authority.sign("server", "127.0.0.1")
    return ServerTls(mode=TlsMode.ENFORCING, cert=files.cert, key=files.key)


@pytest.fixture(scope="module")
def client(authority: Authority) -> ClientTls:
    return ClientTls(ca=authority.ca)


LOOPS = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, loop_factory()], ids=["asyncio", "uvloop"]
)


@LOOPS
def test_requests_and_answers_of_all_sizes_arrive(
    loop: Callable[[], asyncio.AbstractEventLoop], server: ServerTls, client: ClientTls
) -> None:
    sizes = [0, 1, 16_383, 16_384, 16_385, 65_536, 200_000, 1 << 20, 5_000_001]
    bodies = [os.urandom(size) for size in sizes]

    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=client) as served:
            answers = await asyncio.gather(*(served.ask(request(ASK, body=b)) for b in bodies))
            assert [bytes(answer.body) for answer in answers] == bodies
            assert {answer.remark for answer in answers} == {"True"}
            many = [request(ASK, body=b"%d" % number) for number in range(3000)]
            answers = await asyncio.gather(*map(served.ask, many))
            assert [answer.body for answer in answers] == [b"%d" % n for n in range(3000)]
            (peer,) = served.server.peers
            await until(lambda: peer.held == 0)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@LOOPS
def test_the_server_asks_the_client(
    loop: Callable[[], asyncio.AbstractEventLoop], server: ServerTls, client: ClientTls
) -> None:
    async def ask_back(peer: Peer, asked: Command) -> Command:
        answer = await peer.request(request(PUSH, body=bytes(300_000)), 200)
        return response(asked, body=answer.body)

    def pushed(peer: Peer, asked: Command) -> Command:
        return response(asked, body=b"%d" % len(asked.body))

    async def run() -> None:
        serves = serving(
            {ASK: ask_back}, client_handlers={PUSH: pushed}, tls=server, client_tls=client
        )
        async with serves as served:
            assert (await served.ask(request(ASK))).body == b"300000"

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


def test_permissive_serves_both_on_one_port(server: ServerTls, client: ClientTls) -> None:
    permissive = msgspec.structs.replace(server, mode=TlsMode.PERMISSIVE)

    async def run() -> None:
        async with (
            serving(HANDLERS, tls=permissive, client_tls=client) as secure,
            serving({}) as plain,
        ):
            answer = await secure.ask(request(ASK, body=b"a"))
            assert (answer.body, answer.remark) == (b"a", "True")
            answer = await plain.client.request(secure.address, request(ASK, body=b"b"), 200)
            assert (answer.body, answer.remark) == (b"b", "False")
            assert sorted(peer.is_secure for peer in secure.server.peers) == [False, True]

    asyncio.run(run())


def test_the_first_bytes_may_arrive_one_by_one(server: ServerTls) -> None:
    permissive = msgspec.structs.replace(server, mode=TlsMode.PERMISSIVE)

    async def run() -> None:
        async with serving(HANDLERS, tls=permissive) as served:
            raw = await Raw.open(served.port)
            for byte in encode(request(ASK, body=b"slow")):
                raw.writer.write(bytes([byte]))
                await raw.writer.drain()
                await asyncio.sleep(0)
            assert (await raw.command()).body == b"slow"
            await raw.close()

    asyncio.run(run())


def test_enforcing_refuses_plain_connections(
    server: ServerTls, client: ClientTls, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=client) as secure, serving({}) as plain:
            with pytest.raises(ConnectionFailedError):
                await plain.client.request(secure.address, request(ASK), 200)
            assert (await secure.ask(request(ASK, body=b"a"))).body == b"a"

    asyncio.run(run())
    assert "closed: it does not use TLS, and tls.server.mode is enforcing" in caplog.text


def test_disabled_refuses_tls_and_clients_do_not_fall_back(
    client: ClientTls, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving(HANDLERS, client_tls=client) as served:
            with pytest.raises(ConnectionFailedError, match="TLS handshake"):
                await served.ask(request(ASK))
            assert not served.server.counts[ASK]

    asyncio.run(run())
    assert "closed: a TLS handshake, and this port does not use TLS" in caplog.text


@pytest.mark.parametrize(
    ("hosts", "verify", "is_accepted"),
    [
        (["127.0.0.1"], Verify.FULL, True),
        (["localhost"], Verify.FULL, False),
        (["localhost"], Verify.CA, True),
        (["localhost"], Verify.NONE, True),
    ],
)
def test_host_names_are_verified(
    authority: Authority, hosts: list[str], verify: Verify, is_accepted: bool
) -> None:
    files = authority.sign("named", *hosts)
    server = ServerTls(mode=TlsMode.PERMISSIVE, cert=files.cert, key=files.key)
    client = ClientTls(ca=authority.ca, verify=verify)

    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=client) as served:
            if is_accepted:
                assert (await served.ask(request(ASK, body=b"a"))).body == b"a"
            else:
                with pytest.raises(ConnectionFailedError, match=r"IP address mismatch.*127.0.0.1"):
                    await served.ask(request(ASK))
                assert not served.server.counts[ASK]

    asyncio.run(run())


@pytest.mark.parametrize("verify", [Verify.FULL, Verify.CA])
def test_strange_authorities_are_refused(
    tmp_path: Path, server: ServerTls, verify: Verify, caplog: pytest.LogCaptureFixture
) -> None:
    strange = ClientTls(ca=Authority(tmp_path).ca, verify=verify)

    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=strange) as served:
            with pytest.raises(ConnectionFailedError, match="the certificate is not accepted"):
                await served.ask(request(ASK))
            await until(lambda: "the TLS handshake failed: tlsv1 alert" in caplog.text)

    asyncio.run(run())


@pytest.mark.parametrize("verify", Verify)
def test_without_a_certificate_the_server_has_a_self_signed_one(verify: Verify) -> None:
    async def run() -> None:
        permissive = ServerTls(mode=TlsMode.PERMISSIVE)
        async with serving(HANDLERS, tls=permissive, client_tls=ClientTls(verify=verify)) as served:
            if verify is Verify.NONE:
                assert (await served.ask(request(ASK))).remark == "True"
            else:
                with pytest.raises(ConnectionFailedError, match="self-signed certificate"):
                    await served.ask(request(ASK))

    asyncio.run(run())


def test_without_the_extra_there_is_no_self_signed_certificate(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)

    async def run(mode: TlsMode) -> None:
        client = ClientTls(verify=Verify.NONE)
        async with serving(HANDLERS, tls=ServerTls(mode=mode), client_tls=client) as served:
            with pytest.raises(ConnectionFailedError):
                await served.ask(request(ASK))

    asyncio.run(run(TlsMode.PERMISSIVE))
    assert "closed: TLS: there is no certificate: set tls.server.certPath" in caplog.text
    with pytest.raises(MqlakeError, match="there is no certificate"):
        asyncio.run(run(TlsMode.ENFORCING))


@pytest.mark.parametrize(
    ("auth", "has_certificate", "is_trusted", "is_accepted"),
    [
        (ClientAuth.NONE, False, False, True),
        (ClientAuth.NONE, True, False, True),
        (ClientAuth.OPTIONAL, False, False, True),
        (ClientAuth.OPTIONAL, True, True, True),
        (ClientAuth.OPTIONAL, True, False, False),
        (ClientAuth.REQUIRE, False, False, False),
        (ClientAuth.REQUIRE, True, True, True),
        (ClientAuth.REQUIRE, True, False, False),
    ],
)
def test_certificates_of_clients(
    tmp_path: Path,
    authority: Authority,
    server: ServerTls,
    *,
    auth: ClientAuth,
    has_certificate: bool,
    is_trusted: bool,
    is_accepted: bool,
) -> None:
    signed_by = authority if is_trusted else Authority(tmp_path, "stranger")
    files = signed_by.sign("client", password="secret") if has_certificate else None
    client = ClientTls(
        ca=authority.ca,
        cert=files.cert if files else "",
        key=files.key if files else "",
        key_password="secret" if files else "",
    )
    asking = msgspec.structs.replace(server, client_auth=auth, ca=authority.ca)

    async def run() -> None:
        async with serving(HANDLERS, tls=asking, client_tls=client) as served:
            if is_accepted:
                assert (await served.ask(request(ASK, body=b"a"))).body == b"a"
            else:
                with pytest.raises(ConnectionFailedError):
                    await served.ask(request(ASK))
                assert not served.server.counts[ASK]

    asyncio.run(run())


@pytest.mark.parametrize("first", ["cert", "key"])
def test_a_renewed_certificate_is_loaded_in_either_order(
    tmp_path: Path, first: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqlake.remoting")
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    files = old.sign("server", "127.0.0.1")
    server = ServerTls(mode=TlsMode.ENFORCING, cert=files.cert, key=files.key)
    trusts_old, trusts_new = ClientTls(ca=old.ca), ClientTls(ca=new.ca)
    certificate, key = new.signed("server", "127.0.0.1")
    parts = [(Path(files.cert), certificate), (Path(files.key), key)]

    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=trusts_old) as served:
            await served.ask(request(ASK))
            (path, data), (other_path, other_data) = parts if first == "cert" else parts[::-1]
            path.write_bytes(data)
            await until(lambda: "remains in use" in caplog.text)
            async with serving({}, client_tls=trusts_old) as other:
                await other.client.request(served.address, request(ASK), 200)
            other_path.write_bytes(other_data)
            await until(lambda: "loaded again" in caplog.text)
            async with serving({}, client_tls=trusts_new) as other:
                await other.client.request(served.address, request(ASK), 200)
            await served.ask(request(ASK))

    asyncio.run(run())


def test_a_check_of_the_files_that_fails_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    files = authority.sign("server", "127.0.0.1")
    server = ServerTls(mode=TlsMode.ENFORCING, cert=files.cert, key=files.key)
    checks: list[None] = []

    def fail(_: WatchedContext) -> None:
        checks.append(None)
        raise OSError("no descriptor is left")

    async def run() -> None:
        async with serving(HANDLERS, tls=server):
            await until(lambda: len(checks) > 1)
        assert "no descriptor is left" in caplog.text

    monkeypatch.setattr(WatchedContext, "refresh", fail)
    asyncio.run(run())


def test_a_removed_certificate_remains_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    files = authority.sign("server", "127.0.0.1")
    server, key = ServerTls(mode=TlsMode.ENFORCING, cert=files.cert, key=files.key), Path(files.key)

    async def run() -> None:
        async with serving(HANDLERS, tls=server, client_tls=ClientTls(ca=authority.ca)) as served:
            await asyncio.to_thread(key.unlink)
            await until(lambda: "No such file" in caplog.text)
            assert (await served.ask(request(ASK))).remark == "True"

    asyncio.run(run())


@pytest.mark.parametrize("which", ["missing", "foreign key", "garbage", "password", "no key"])
def test_a_server_with_wrong_files_does_not_start(
    tmp_path: Path, authority: Authority, which: str
) -> None:
    files = authority.sign("wrong", password="secret")
    garbage = tmp_path / "garbage.pem"
    garbage.write_bytes(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
    cert, key = {
        "missing": (str(tmp_path / "missing"), files.key),
        "foreign key": (files.cert, authority.sign("other").key),
        "garbage": (str(garbage), files.key),
        "password": (files.cert, files.key),
        "no key": (files.cert, ""),
    }[which]
    server = ServerTls(mode=TlsMode.PERMISSIVE, cert=cert, key=key, key_password="guess")

    async def run() -> None:
        async with serving(HANDLERS, tls=server):
            pass

    with pytest.raises(MqlakeError, match=r"^TLS: ") as found:
        asyncio.run(run())
    assert "\n" not in str(found.value)
    assert "guess" not in str(found.value)


def test_passwords_are_not_shown() -> None:
    for options in (ServerTls(key_password="s3cret"), ClientTls(key_password="s3cret")):
        assert "s3cret" not in repr(options)
        assert "s3cret" not in str(options)


def test_a_large_answer_waits_for_a_slow_reader(server: ServerTls, client: ClientTls) -> None:
    """What is encrypted at a time is limited, and counted."""
    size = 12 << 20

    def large(peer: Peer, asked: Command) -> Command:
        return response(asked, body=bytes(size))

    async def run() -> None:
        async with serving({ASK: large}, tls=server, client_tls=client) as served:
            peer = await served.client.connect(served.address)
            peer.hold_back()
            asked = asyncio.ensure_future(served.ask(request(ASK)))
            await until(lambda: any(one.held > size // 2 for one in served.server.peers))
            peer.go_on()
            assert len((await asked).body) == size
            await until(lambda: served.used() == 0)

    asyncio.run(run())


def test_idle_connections_are_closed(
    server: ServerTls, client: ClientTls, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        limits = Limits(idle=0.05)
        async with serving(HANDLERS, limits, tls=server, client_tls=client) as served:
            # On a slow machine, it may be closed before the handshake is complete.
            with suppress(ConnectionFailedError):
                await served.client.connect(served.address)
            await until(lambda: "closed: silent for 0.05 s" in caplog.text)
            await until(lambda: not served.server.peers)
            await until(lambda: served.client.connected(served.address) is None)

    asyncio.run(run())


def test_the_time_of_a_handshake_is_limited(
    server: ServerTls, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        limits = Limits(handshake=0.05)
        begin = time.monotonic()
        async with serving(HANDLERS, limits, tls=server) as served:
            raw = await Raw.open(served.port)
            raw.writer.write(b"\x16\x03\x01")
            assert await raw.is_closed()
            await raw.close()
        assert time.monotonic() - begin >= 0.05

    asyncio.run(run())
    assert "its TLS handshake is not complete after 0.05 s" in caplog.text
