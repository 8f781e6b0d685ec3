"""The log is copied over TLS: who is copied from, what is refused, and what a stranger can do."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqlake.programs.serve import loop_factory
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.replication.frames import encode_report
from mqlake.remoting.tls.client import ClientContexts
from mqlake.remoting.tls.layer import TlsLayer
from mqlake.remoting.tls.options import ClientTls, Verify
from mqlake.replication import connecting, ha_arrivals, ha_server
from mqlake.replication.connecting import connect
from mqlake.replication.master_log import ask
from tests.broker.running import Running, running, to
from tests.replication.slaves import (
    FILES,
    SLAVE,
    Slave,
    close_all,
    end,
    follower,
    master,
    server,
    slave_of,
)
from tests.tls.certificates import Authority
from tests.until import until

BODY = b"x" * 1000
LARGE = bytes(range(256)) * 1200

Settings = Mapping[str, object]


@asynccontextmanager
async def pair(
    path: Path, of_master: Settings, of_slave: Settings
) -> AsyncIterator[tuple[Running, Running]]:
    """Run a master, and a slave that knows where it is."""
    async with (
        running(path / "master", **(FILES | dict(of_master))) as one,
        slave_of(one, path / "slave", **of_slave) as slave,
    ):
        yield one, slave


def of_server(authority: Authority, *, client_auth: bool = False) -> dict[str, object]:
    """Return settings with which the test's own client, which has no TLS, can send messages."""
    return authority.settings(client_auth=client_auth) | {"tls.server.mode": "permissive"}


def of_client(authority: Authority) -> dict[str, object]:
    return {"tls.enable": True, "tls.client.trustCertPath": authority.ca}


async def fill(broker: Running, *bodies: bytes) -> None:
    for number, body in enumerate(bodies):
        answer = await broker.send(to("Orders", queue_id=number % 4), body)
        assert answer.code == ResponseCode.SUCCESS


async def is_copied(one: Running, slave: Running) -> None:
    await until(lambda: end(one) == end(slave))
    await until(lambda: [each.acknowledged for each in server(one).connections] == [end(one)])


@pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, loop_factory()], ids=["asyncio", "uvloop"]
)
@pytest.mark.parametrize("has_tls", [False, True])
def test_a_slave_copies_and_producers_wait_for_it(
    tmp_path: Path,
    authority: Authority,
    has_tls: bool,
    loop: Callable[[], asyncio.AbstractEventLoop] | None,
) -> None:
    settings = of_server(authority, client_auth=True) | {"tls.enable": has_tls}

    async def run() -> None:
        of_master = settings | {"brokerRole": "SYNC_MASTER", "mappedFileSizeCommitLog": 1 << 20}
        of_slave = settings | {"mappedFileSizeCommitLog": 1 << 20}
        async with pair(tmp_path, of_master, of_slave) as (one, slave):
            await until(lambda: server(one).in_sync == 1)
            await fill(one, *[BODY] * 20, LARGE, BODY, LARGE, LARGE)
            await is_copied(one, slave)
            (connection,) = server(one).connections
            transport = connection._writer.transport  # pyright: ignore[reportPrivateUsage]
            assert isinstance(transport, TlsLayer) is has_tls
            assert follower(slave).problem is None

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


def test_a_slave_that_lags_far_copies_over_tls(tmp_path: Path, authority: Authority) -> None:
    settings = of_server(authority) | {"mappedFileSizeCommitLog": 8 << 20}

    async def run() -> None:
        async with running(tmp_path / "master", **(FILES | settings)) as one:
            await fill(one, *[LARGE] * 30)
            async with slave_of(one, tmp_path / "slave", **settings) as slave:
                await is_copied(one, slave)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("of_master", "of_slave", "reason"),
    [
        ({"haTlsEnable": False}, {}, "does not accept TLS for replication"),
        ({"haTlsEnable": False}, {"haTlsEnable": False}, None),
        ({"tls.server.mode": "permissive"}, {"haTlsEnable": False}, None),
        ({"tls.server.mode": "enforcing"}, {"haTlsEnable": False}, "the master closed the"),
        ({}, {"tls.client.trustCertPath": ""}, "does not answer requests"),
    ],
)
def test_who_is_followed(
    tmp_path: Path,
    authority: Authority,
    of_master: dict[str, object],
    of_slave: dict[str, object],
    reason: str | None,
) -> None:
    settings = of_server(authority) | of_master

    async def run() -> None:
        async with pair(tmp_path, settings, of_client(authority) | of_slave) as (one, slave):
            if reason is None:
                await fill(one, BODY, BODY)
                await is_copied(one, slave)
                return
            await until(lambda: reason in (follower(slave).problem or ""))
            assert server(one).in_sync == 0

    asyncio.run(run())


def test_the_masters_certificate_is_verified(tmp_path: Path, authority: Authority) -> None:
    strange = Authority(tmp_path, "strange")
    named = authority.sign("named", "another.example")
    wrong_host = {"tls.server.certPath": named.cert, "tls.server.keyPath": named.key}
    cases: list[tuple[ClientTls, dict[str, object], bool]] = [
        (ClientTls(ca=authority.ca), {}, True),
        (ClientTls(ca=strange.ca), {}, False),
        (ClientTls(), {}, False),
        (ClientTls(ca=authority.ca), wrong_host, False),
        (ClientTls(ca=authority.ca, verify=Verify.CA), wrong_host, True),
        (ClientTls(ca=strange.ca, verify=Verify.CA), wrong_host, False),
    ]

    async def run() -> None:
        for number, (tls, of_master, is_accepted) in enumerate(cases):
            settings = FILES | of_server(authority) | of_master
            async with running(tmp_path / str(number), **settings) as one:
                if is_accepted:
                    connection = await connect(server(one).address, ClientContexts(tls))
                    connection.close()
                    continue
                with pytest.raises(OSError, match="certificate is not accepted"):
                    await connect(server(one).address, ClientContexts(tls))

    asyncio.run(run())


def test_a_java_master_receives_no_handshake(tmp_path: Path, authority: Authority) -> None:
    """It would take one for a report, and count on a slave that has nothing."""
    connections: list[int] = []

    async def lead(number: int, _: object) -> None:
        connections.append(number)

    async def run() -> None:
        known, plain = of_client(authority) | SLAVE, {"haTlsEnable": False}
        async with (
            master(lead) as address,
            running(tmp_path / "other", **(of_server(authority) | plain)) as answering,
            running(tmp_path / "slave", **(known | {"haMasterAddress": address})) as slave,
        ):

            async def says(reason: str) -> None:
                await until(lambda: reason in (follower(slave).problem or ""))

            await says("its master's address is not known")
            follower(slave).master_address = answering.address
            await says("does not accept TLS for replication")
            assert connections == []

    asyncio.run(run())


def test_runtime_information_tells_whether_slaves_may_use_tls(tmp_path: Path) -> None:
    async def run() -> None:
        for settings, found in (({}, True), ({"tls.server.mode": "disabled"}, False)):
            path = tmp_path / str(found)
            async with running(path, **(FILES | settings)) as one:
                assert (await ask(one.client, one.address)).has_tls is found

    asyncio.run(run())


# Strangers


Test = Callable[[Running], Awaitable[None]]


def on_a_master(path: Path, settings: Settings, test: Test) -> None:
    async def run() -> None:
        async with running(path, **(FILES | dict(settings))) as one:
            try:
                await test(one)
            finally:
                await close_all()

    asyncio.run(run())


def test_clear_text_is_refused_if_tls_is_enforced(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(one: Running) -> None:
        slave = await Slave.connect(server(one).address)
        slave.report(0)
        await slave.closed()
        assert slave.received == b""
        assert server(one).connected == 0

    on_a_master(tmp_path, authority.settings(), test)
    assert "it does not use TLS, and tls.server.mode is enforcing" in caplog.text


def test_a_handshake_is_refused_if_tls_is_off(tmp_path: Path, authority: Authority) -> None:
    async def test(one: Running) -> None:
        slave = await Slave.connect(server(one).address)
        slave.writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200))
        await slave.closed()
        assert server(one).in_sync == 0

    on_a_master(tmp_path, {"tls.server.mode": "disabled", "brokerRole": "SYNC_MASTER"}, test)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16",
        b"\x16\x03\x01\x00\x00",
        b"\x16" + bytes(range(256)) * 8,
        b"\x16\x03\x01\xff\xff" + bytes(70_000),
        b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380),
        b"\x16\x03\x01\x00\x01\x01" * 60_000,
        b"",
    ],
    ids=["a byte", "an empty record", "garbage", "too long", "a long hello", "many", "nothing"],
)
def test_hostile_handshakes_end_and_an_honest_slave_is_served(
    tmp_path: Path, authority: Authority, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_arrivals, "SECONDS", 2.0)
    settings = of_server(authority)

    async def run() -> None:
        async with pair(tmp_path, settings, settings) as (one, slave):
            await fill(one, BODY)
            await is_copied(one, slave)
            strangers = [await Slave.connect(server(one).address) for _ in range(5)]
            for stranger in strangers:
                stranger.writer.write(data)
            for stranger in strangers:
                await stranger.closed()
            await until(lambda: server(one).connected == 1)
            await fill(one, BODY)
            await is_copied(one, slave)
        await close_all()

    asyncio.run(run())


def test_whoever_only_connects_takes_no_place(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_server, "_MOST", 8)
    context = ssl.create_default_context(cafile=authority.ca)

    async def test(one: Running) -> None:
        await fill(one, BODY)
        for number in range(12):
            stranger = await Slave.connect(server(one).address)
            stranger.writer.write(b"\x16\x03\x01"[: number % 4])
            await until(lambda: 0 < server(one).connected <= 8)
        host, _, port = server(one).address.rpartition(":")
        slave = Slave(*await asyncio.open_connection(host, int(port), ssl=context))
        slave.writer.write(encode_report(0))
        await slave.data()

    on_a_master(tmp_path, of_server(authority), test)


def test_renewed_certificates_are_used_without_a_restart(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = authority.settings()
    cert, key = (Path(str(settings[f"tls.server.{name}Path"])) for name in ("cert", "key"))

    async def test(one: Running) -> None:
        async def seen() -> bytes | None:
            context = ssl.create_default_context(cafile=authority.ca)
            host, _, port = server(one).address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            Slave(reader, writer)
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)

        before = await seen()
        files = authority.signed("renewed", "127.0.0.1")
        cert.write_bytes(files[0])
        key.write_bytes(files[1])
        while await seen() == before:  # noqa: ASYNC110 (a file has no event)
            await asyncio.sleep(0.1)

    on_a_master(tmp_path, settings, test)


def test_a_master_that_never_answers_a_handshake_is_left_soon(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose process is frozen: the system still accepts connections for it."""
    monkeypatch.setattr(connecting, "_CONNECT", 0.2)

    async def run() -> None:
        accepted: list[asyncio.StreamWriter] = []
        frozen = await asyncio.start_server(
            lambda _, writer: accepted.append(writer), "127.0.0.1", 0
        )
        port = frozen.sockets[0].getsockname()[1]
        contexts = ClientContexts(ClientTls(ca=authority.ca))
        async with asyncio.timeout(200):
            with pytest.raises(OSError):  # noqa: PT011 (a timeout has no text)
                await connect(f"127.0.0.1:{port}", contexts)
        for writer in accepted:
            writer.close()
        frozen.close()
        await frozen.wait_closed()

    asyncio.run(run())
