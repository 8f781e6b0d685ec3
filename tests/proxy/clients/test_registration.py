"""Clients come with their settings, stay by heartbeats, and go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.formats.config.subscription_group import (
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroup,
)
from mqlake.grpc.messages import (
    ClientType,
    Code,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    Settings,
    Subscription,
)
from mqlake.grpc.status import GrpcError, GrpcStatus
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.auth.closed import CLOSED
from tests.proxy.clients.of_clients import OpenStream, consumer, known, producer
from tests.proxy.serving import named, serving
from tests.proxy.test_gate import user
from tests.until import rounds, until

BEAT = HeartbeatRequest(client_type=ClientType.PRODUCER)


def test_a_producer_is_answered_with_its_settings_completed(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream = OpenStream(calls, "p1")
            found = (await stream.answer_to(producer("T1", "T2"))).settings
            assert [each.name for each in found.publishing.topics] == ["T1", "T2"]
            assert found.publishing.validate_message_type
            assert found.publishing.max_body_size == 4 << 20
            backoff = found.backoff_policy
            assert backoff.max_attempts == 3
            assert backoff.exponential_backoff.initial.nanos == 10_000_000
            assert backoff.exponential_backoff.max.seconds == 1
            assert found.HasField("metric")
            assert not found.metric.on

    simulated.run(run())


def test_a_consumer_is_answered_with_what_its_group_says(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            policy = GroupRetryPolicy("EXPONENTIAL", ExponentialRetryPolicy(1500, 9000, 3))
            group = SubscriptionGroup(
                "g",
                consume_message_orderly=True,
                retry_max_times=4,
                group_retry_policy=policy,
            )
            calls.broker.state.groups.put(group)
            found = (await OpenStream(calls, "c1").answer_to(consumer("g", "T"))).settings
            assert found.subscription.fifo
            assert found.subscription.receive_batch_size == 32
            assert found.subscription.long_polling_timeout.seconds == 20
            assert found.backoff_policy.max_attempts == 5
            backoff = found.backoff_policy.exponential_backoff
            assert (backoff.initial.seconds, backoff.initial.nanos) == (1, 500_000_000)
            assert (backoff.max.seconds, backoff.multiplier) == (9, 3)

    simulated.run(run())


def test_a_group_without_a_policy_has_the_delays_of_rocketmq(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            found = (await OpenStream(calls, "c1").answer_to(consumer("g", "T"))).settings
            seconds = [each.seconds for each in found.backoff_policy.customized_backoff.next]
            minutes = [60 * minute for minute in (*range(1, 11), 20, 30, 60, 120)]
            assert seconds == [1, 5, 10, 30, *minutes]
            assert found.backoff_policy.max_attempts == 17

    simulated.run(run())


def test_the_broker_lists_clients_until_they_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            clients = calls.broker.state.clients
            await known(calls, "p1", producer("T"), peer="10.0.0.1:77")
            await known(calls, "c1", consumer("g", "T"), peer="10.0.0.2:78")
            (client,) = clients.producers["T"]
            assert (client.client_id, client.peer.address) == ("p1", "10.0.0.1:77")
            (client,) = clients.consumers["g"]
            assert (client.client_id, client.peer.address) == ("c1", "10.0.0.2:78")
            assert list(clients.consumers["g"].subscriptions) == ["T"]
            for client_id in ("p1", "c1"):
                request = NotifyClientTerminationRequest()
                found = await calls.ask("NotifyClientTermination", request, client_id)
                assert found.status.code == Code.OK
            await until(lambda: not clients.producers and not clients.consumers)
            assert not list(calls.service.state.clients)

    simulated.run(run())


def test_newer_settings_replace_the_subscriptions(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with serving(tmp_path, clock=clock) as calls:
            stream = await known(calls, "c1", consumer("g", "T"))
            clock.advance(1)
            settings = consumer("g", "T", "U")
            settings.subscription.subscriptions[0].expression.expression = "a || b"
            await stream.answer_to(settings)
            found = calls.broker.state.clients.consumers["g"].subscriptions
            assert {name: each.sub_string for name, each in found.items()} == {
                "T": "a || b",
                "U": "*",
            }

    simulated.run(run())


def test_a_client_without_settings_is_told_to_send_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            found = await calls.ask("Heartbeat", BEAT, "nobody")
            assert found.status.code == Code.UNRECOGNIZED_CLIENT_TYPE
            request = NotifyClientTerminationRequest()
            found = await calls.ask("NotifyClientTermination", request, "nobody")
            assert found.status.code == Code.UNRECOGNIZED_CLIENT_TYPE

    simulated.run(run())


def test_a_client_without_heartbeats_expires(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with serving(tmp_path, clock=clock, channelExpiredTimeout=86_400_000) as calls:
            await known(calls, "p1", producer("T"))
            await known(calls, "p2", producer("T"))
            clock.advance(119)
            assert (await calls.ask("Heartbeat", BEAT, "p2")).status.code == Code.OK
            clock.advance(2)
            found = calls.service.state.clients
            await until(lambda: found.get("p1") is None)
            assert found.get("p2") is not None
            await until(lambda: len(calls.broker.state.clients.producers["T"]) == 1)

    simulated.run(run())


def test_a_heartbeat_registers_a_client_again_that_the_broker_has_lost(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            await known(calls, "p1", producer("T"))
            (client,) = calls.broker.state.clients.producers["T"]
            client.peer.close("for a test")
            await until(lambda: not calls.broker.state.clients.producers)
            assert (await calls.ask("Heartbeat", BEAT, "p1")).status.code == Code.OK
            assert len(calls.broker.state.clients.producers["T"]) == 1

    simulated.run(run())


@pytest.mark.parametrize(
    "settings",
    [
        Settings(client_type=ClientType.PRODUCER),
        Settings(client_type=ClientType.PRODUCER, subscription=Subscription(group=named("g"))),
        Settings(client_type=77, subscription=Subscription(group=named("g"))),
        consumer("a b", "T"),
        consumer("g", "a b"),
        consumer("CID_RMQ_SYS_TRANS", "T"),
        producer("SCHEDULE_TOPIC_XXXX"),
        producer(*("T" * 1001)),
        producer("T" * 127 * 10),
    ],
)
def test_illegal_settings_end_the_stream(tmp_path: Path, settings: Settings) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            with pytest.raises(GrpcError) as refused:
                await OpenStream(calls, "x").answer_to(settings)
            assert refused.value.status is GrpcStatus.INVALID_ARGUMENT
            assert not list(calls.service.state.clients)

    simulated.run(run())


def test_one_address_has_a_share_of_the_clients(tmp_path: Path) -> None:
    async def run() -> None:
        limits = ProxySettings(max_client_nums=4, max_address_share=50)
        async with serving(tmp_path, limits) as calls:
            for number in range(2):
                await known(calls, f"greedy-{number}", producer("T"), peer="10.0.0.1:1")
            with pytest.raises(GrpcError):
                await known(calls, "greedy-3", producer("T"), peer="10.0.0.1:1")
            await known(calls, "modest", producer("T"), peer="10.0.0.2:1")
            # Settings that are sent again need no room.
            await known(calls, "greedy-1", producer("T"), peer="10.0.0.1:1")

    simulated.run(run())


def test_one_address_has_a_share_of_the_memory_for_settings(tmp_path: Path) -> None:
    async def run() -> None:
        limits = ProxySettings(max_client_settings_size=400, max_address_share=50)
        async with serving(tmp_path, limits) as calls:
            large = producer(*("T" * 60))
            with pytest.raises(GrpcError):
                await known(calls, "greedy", large, peer="10.0.0.1:1")
            await known(calls, "modest", producer("T"), peer="10.0.0.1:1")
            await known(calls, "modest-too", producer("T"), peer="10.0.0.2:1")

    simulated.run(run())


def test_a_call_waits_for_the_settings_of_its_client(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            found = calls.service.state.clients
            waiting = [asyncio.create_task(found.arriving("late")) for _ in range(2)]
            await rounds()
            await known(calls, "late", producer("T"))
            assert {client.client_id for client in await asyncio.gather(*waiting)} == {"late"}
            assert (await found.arriving("late")).client_id == "late"
            with pytest.raises(StatusError) as refused:
                await found.arriving("never")
            assert refused.value.code is Code.UNRECOGNIZED_CLIENT_TYPE

    simulated.run(run())


def test_a_client_leaves_the_groups_that_it_no_longer_names(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            found = calls.broker.state.clients
            stream = await known(calls, "c1", consumer("ga", "T"))
            await stream.answer_to(consumer("gb", "T"))
            await until(lambda: "ga" not in found.consumers)
            assert len(found.consumers["gb"]) == 1
            producing = await known(calls, "p1", producer("T", "U"))
            await producing.answer_to(producer("U"))
            await until(lambda: list(found.producers) == ["U"])

    simulated.run(run())


@pytest.mark.parametrize(("retries", "attempts"), [(2**31 - 1, 2**31 - 1), (-1, 2**31 - 1), (0, 1)])
def test_a_group_may_retry_for_ever(tmp_path: Path, retries: int, attempts: int) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            policy = GroupRetryPolicy("EXPONENTIAL", ExponentialRetryPolicy(-1, 2**62, 2**62))
            group = SubscriptionGroup("g", retry_max_times=retries, group_retry_policy=policy)
            calls.broker.state.groups.put(group)
            found = (await OpenStream(calls, "c1").answer_to(consumer("g", "T"))).settings
            assert found.backoff_policy.max_attempts == attempts

    simulated.run(run())


def test_two_users_cannot_register_the_same_client_at_once(tmp_path: Path) -> None:
    """Otherwise the one that the broker answers last would get what is sent to the other."""

    async def run() -> None:
        async with serving(tmp_path, **CLOSED) as calls:
            first, second = user(calls, "one"), user(calls, "two")
            streams = [OpenStream(calls, "c1", **each) for each in (first, second)]
            settings = [consumer("g", "T"), consumer("h", "T")]
            answers = await asyncio.gather(*map(OpenStream.answer_to, streams, settings))
            assert [each.status.code for each in answers] == [Code.OK, Code.UNAUTHORIZED]
            assert list(calls.broker.state.clients.consumers) == ["g"]

    simulated.run(run())
