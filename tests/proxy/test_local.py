"""A broker serves gRPC clients on a port of its own, and nothing of that without the port."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import grpc.aio
import pytest

from mqlake.broker.broker import Broker
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import Topic
from mqlake.grpc.messages import Code, SendMessageRequest, SendMessageResponse
from mqlake.grpc.method import SERVICE
from mqlake.programs import ports
from mqlake.programs.broker import BrokerProgram, starting_settings
from mqlake.proxy import local
from mqlake.proxy.gate import CLIENT_ID
from mqlake.remoting.metrics.calls import CALLS
from mqlake.testing import broker
from tests.broker.running import SMALL, next_port
from tests.proxy.sending.messages import message, send
from tests.tls.certificates import Authority

SEND = "/apache.rocketmq.v2.MessagingService/SendMessage"
METADATA = ((CLIENT_ID, "client-1"),)


async def sent(channel: grpc.aio.Channel) -> SendMessageResponse:
    call = channel.unary_unary(
        SEND,
        request_serializer=SendMessageRequest.SerializeToString,
        response_deserializer=SendMessageResponse.FromString,
    )
    return await call(send(message()), metadata=METADATA, wait_for_ready=True)


def program(path: Path, port: int, **settings: object) -> BrokerProgram:
    given = SMALL | {
        "storePathRootDir": str(path),
        "listenPort": next_port(),
        "grpcServerPort": port,
        **settings,
    }
    return BrokerProgram(starting_settings(given), namesrv_port=0)


def test_messages_come_in_over_the_port(tmp_path: Path) -> None:
    async def run() -> None:
        port = ports.free_port()
        async with program(tmp_path, port) as running:
            running.broker.state.topics.put(Topic("T", 1, 1))
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                assert (await sent(channel)).status.code == Code.OK
            found = [each for each in running.grpc_samples() if each.metric is CALLS]
            assert [(each.labels, each.value) for each in found] == [(("SendMessage", "20000"), 1)]
            assert running.broker.state.store.queue("T", 0).max_offset == 1
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await channel.unary_unary(SEND)(b"", metadata=METADATA)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "setting"),
    [("SendMessage", "grpcMaxInboundMessageSize"), ("Heartbeat", "grpcMaxInboundRequestSize")],
)
def test_a_request_that_is_too_large_names_the_setting(
    tmp_path: Path, method: str, setting: str
) -> None:
    async def run() -> None:
        port = ports.free_port()
        sizes = {"maxMessageSize": 1024, setting: 4096}
        async with program(tmp_path, port, **sizes):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                with pytest.raises(grpc.aio.AioRpcError, match=rf"is 4096 \({setting}\)") as caught:
                    await channel.unary_unary(f"/{SERVICE}/{method}")(bytes(4097))
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(run())


def test_a_port_that_is_taken_is_an_error_and_the_store_is_closed(tmp_path: Path) -> None:
    async def run() -> None:
        async with program(tmp_path / "first", ports.free_port()) as first:
            taken = first.broker.settings.grpc_server_port
            second = program(tmp_path / "second", taken)
            with pytest.raises(MqlakeError, match=f"cannot listen on .*:{taken}"):
                await second.__aenter__()
            assert not (tmp_path / "second" / "abort").exists()

    asyncio.run(run())


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        with pytest.raises(MqlakeError, match=r"grpcServerPort: .*pip install 'mqlake\[grpc\]'"):
            await program(tmp_path, 8081).__aenter__()

    monkeypatch.setattr(local, "find_spec", lambda _: None)
    asyncio.run(run())


def test_tls_is_that_of_the_broker(tmp_path: Path) -> None:
    authority, port = Authority(tmp_path), ports.free_port()
    trusted = grpc.ssl_channel_credentials(Path(authority.ca).read_bytes())

    async def run() -> None:
        async with program(tmp_path / "store", port, **authority.settings()) as running:
            running.broker.state.topics.put(Topic("T", 1, 1))
            async with grpc.aio.secure_channel(f"127.0.0.1:{port}", trusted) as channel:
                assert (await sent(channel)).status.code == Code.OK
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                with pytest.raises(grpc.aio.AioRpcError):
                    await channel.unary_unary(SEND)(b"", metadata=METADATA)

    asyncio.run(run())


def test_nothing_of_it_is_loaded_unless_the_port_is_set() -> None:
    code = (
        "import sys; import mqlake.programs.broker, mqlake.testing.running_broker;"
        "print([name for name in sys.modules if name.startswith(('mqlake.grpc', 'mqlake.proxy',"
        " 'google'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_broker_for_tests_serves_it_on_a_free_port(tmp_path: Path) -> None:
    async def run(address: str) -> int:
        async with grpc.aio.insecure_channel(address) as channel:
            return int((await sent(channel)).status.code)

    with broker(tmp_path, grpc=True) as running:
        running.call(_with_topic)
        assert running.grpc is not None
        assert asyncio.run(run(running.grpc)) == Code.OK
        with running.consumer("g", "T") as consumer:
            received = consumer.receive(60)
            assert received is not None
            assert received.body == b"hello"
    with broker(tmp_path) as running:
        assert running.grpc is None


async def _with_topic(found: Broker) -> None:
    found.state.topics.put(Topic("T", 1, 1))
