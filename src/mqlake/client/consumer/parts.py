"""The parts of a consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.consume_trace import ConsumeTrace
from mqlake.client.consumer.consumed import Finisher
from mqlake.client.consumer.inbox import Inbox, InboxQueue
from mqlake.client.consumer.offsets import BrokerOffsets, Offsets
from mqlake.client.consumer.pop.calls import PopCalls
from mqlake.client.consumer.pop.popping import Popping
from mqlake.client.consumer.pulling import Decode, Pulling
from mqlake.client.consumer.queue_messages import QueueMessages
from mqlake.client.consumer.queues.lock_calls import LockCalls
from mqlake.client.consumer.queues.locks import Locks
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.consumer.statistics import Statistics
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.instance import ClientInstance
from mqlake.client.trace.opening import open_tracer
from mqlake.protocol.namespace import Namespace
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class ConsumerParts:
    """The parts of a started consumer, from the brokers to the inbox."""

    instance: ClientInstance
    settings: ConsumerSettings
    calls: BrokerCalls
    offsets: Offsets
    statistics: Statistics
    trace: ConsumeTrace | None
    inbox: Inbox[InboxQueue]
    locks: Locks
    pulling: Pulling
    popping: Popping


def make_parts(
    *,
    consumer: Finisher,
    group: str,
    settings: ConsumerSettings,
    instance: ClientInstance,
    namespace: Namespace,
    wanted: Mapping[str, SelectedTopic],
    home: Path | None,
    moved: Callable[[QueueMessages, int], None],
    decode: Decode,
) -> ConsumerParts:
    """Create the parts of a consumer.

    Args:
        group: the name, as brokers know it.
        wanted: the subscription of each topic.
        home: the directory of the group's offsets; None if brokers keep them.
        moved, decode: see `Pulling`.
    """
    now = asyncio.get_running_loop().time
    trace = _make_trace(instance, settings, namespace.unwrap(group))
    calls, inbox, statistics = (
        BrokerCalls(instance, group, namespace),
        Inbox[InboxQueue](trace),
        Statistics(now),
    )
    offsets = BrokerOffsets(calls) if home is None else _local_offsets(instance, group, home)
    pulling = Pulling(
        group=group,
        calls=calls,
        offsets=offsets,
        offer=inbox.offer,
        settings=settings,
        finisher=consumer,
        statistics=statistics,
        moved=moved,
        decode=decode,
    )
    popping = Popping(
        pops=PopCalls(instance, group),
        calls=calls,
        wanted=wanted,
        offer=inbox.offer,
        settings=settings,
        finisher=consumer,
        statistics=statistics,
        paused=pulling.paused,
        namespace=namespace,
        trace=trace,
    )
    locks = Locks(LockCalls(instance, group), now)
    return ConsumerParts(
        instance=instance,
        settings=settings,
        calls=calls,
        offsets=offsets,
        statistics=statistics,
        trace=trace,
        inbox=inbox,
        locks=locks,
        pulling=pulling,
        popping=popping,
    )


def _local_offsets(instance: ClientInstance, group: str, home: Path) -> Offsets:
    from mqlake.client.consumer.local_offsets import (
        LocalOffsets,
    )  # The module that writes files loads slowly.

    return LocalOffsets(instance.client_id, group, home)


def _make_trace(
    instance: ClientInstance, settings: ConsumerSettings, group: str
) -> ConsumeTrace | None:
    tracer = open_tracer(instance, settings.trace)
    if tracer is None:
        return None
    return ConsumeTrace(tracer, group, instance.unique_keys.next, SystemClock().milliseconds)
