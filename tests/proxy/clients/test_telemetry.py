"""A Telemetry stream belongs to a client while it is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.grpc.messages import TelemetryCommand, VerifyMessageCommand
from mqlake.grpc.status import GrpcError, GrpcStatus
from mqlake.proxy.settings import ProxySettings
from tests import simulated
from tests.proxy.clients.of_clients import known, producer
from tests.proxy.sending.messages import message
from tests.proxy.serving import serving
from tests.until import rounds


def test_a_client_stays_known_when_its_stream_ends(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream = await known(calls, "p1", producer("T"))
            client = calls.service.state.clients.known("p1")
            assert client.stream is not None
            await stream.end()
            assert calls.service.state.clients.known("p1") is client
            assert client.stream is None

    simulated.run(run())


def test_the_latest_stream_of_a_client_counts(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            first = await known(calls, "p1", producer("T"))
            await known(calls, "p1", producer("T"))
            await first.end()
            assert calls.service.state.clients.known("p1").stream is not None

    simulated.run(run())


def test_one_address_has_a_share_of_the_streams(tmp_path: Path) -> None:
    async def run() -> None:
        limits = ProxySettings(max_telemetry_streams=4, max_address_share=50)
        async with serving(tmp_path, limits) as calls:
            for number in range(2):
                await known(calls, f"greedy-{number}", producer("T"), peer="10.0.0.1:1")
            with pytest.raises(GrpcError) as refused:
                await known(calls, "greedy-2", producer("T"), peer="10.0.0.1:1")
            assert refused.value.status is GrpcStatus.RESOURCE_EXHAUSTED
            first = await known(calls, "modest", producer("T"), peer="10.0.0.2:1")
            await first.end()
            await known(calls, "modest", producer("T"), peer="10.0.0.2:1")

    simulated.run(run())


def test_what_a_client_does_not_read_has_a_limit(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream = await known(calls, "c1", producer("T"))
            client = calls.service.state.clients.known("c1")
            assert client.stream is not None
            verify = VerifyMessageCommand(message=message(body=bytes(3 << 20)))
            for _ in range(10):
                client.stream.send(TelemetryCommand(verify_message_command=verify))
            for _ in range(100):  # These wait until the client has read.
                stream.send(TelemetryCommand(settings=producer("T")))
            await rounds()
            received = [await stream.next() for _ in range(101)]
            kinds = [each.WhichOneof("command") for each in received]
            assert kinds == ["verify_message_command"] + ["settings"] * 100

    simulated.run(run())
