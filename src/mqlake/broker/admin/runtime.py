"""A broker's state, under the names that tools read (upstream: `getRuntimeInfo`)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import DiskError
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import VERSION as COMMAND_VERSION
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import StatsHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.replication.master_log import HAS_TLS

VERSION = "V5_5_0"
"""The release whose protocol the broker speaks; tools read it."""

_POOLS = {"send": 10_000, "pull": 100_000, "litePull": 100_000, "query": 20_000, "ack": 100_000}
"""The queues of thread pools in the answer, with the capacities that RocketMQ gives them."""
_UNLIMITED = 2**31 - 1
_UNITS = "KMGTPE"


class RuntimeAdmin:
    """Answers requests about the broker's state."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._store = state.store
        self._started = self._store.clock.milliseconds()

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_BROKER_RUNTIME_INFO, self._info, Permission.READ),
            Route(RequestCode.VIEW_BROKER_STATS_DATA, self._stats, Permission.READ),
        )

    def _info(self, _peer: Peer, request: Command) -> Command:
        facts: dict[str, object] = {
            "brokerVersion": COMMAND_VERSION,  # of RocketMQ 4; rocketmq-exporter fails without it
            "brokerVersionDesc": VERSION,
            "brokerActive": "true",
            "bootTimestamp": self._started,
            HAS_TLS: str(self._state.replication.accepts_tls).lower(),
            "runtime": _elapsed(self._store.clock.milliseconds() - self._started),
            "startAcceptSendRequestTimeStamp": (
                self._runtime.settings.start_accept_send_request_time_stamp
            ),
            **self._log(),
            **self._disk(),
            **self._counts(),
            **self._services(),
            **self._timers(),
            **self._delays(),
            **self._queues(),
        }
        table = {name: str(value) for name, value in sorted(facts.items())}
        return response(request, body=encode_body(KVTable(table)))

    def _log(self) -> dict[str, object]:
        log = self._store.watermarks
        first = self._store.reads.record_at(log.min_offset)
        return {
            "commitLogMinOffset": log.min_offset,
            "commitLogMaxOffset": log.end,
            "dispatchBehindBytes": log.end - log.dispatched,
            "dispatchMaxBuffer": 0,
            "earliestMessageTimeStamp": first.store_timestamp if first else -1,
            "remainHowManyDataToFlush": readable_size(log.end - log.flushed),
            "remainTransientStoreBufferNumbs": _UNLIMITED,
        }

    def _delays(self) -> dict[str, object]:
        ends = self._store.offsets
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{ends.get((SCHEDULE_TOPIC, level - 1), 0)}"
            for level, offset in self._store.config.delay_offsets.items()
        }

    def _disk(self) -> dict[str, object]:
        try:
            usage = self._store.directory.usage()
        except DiskError:
            return {"commitLogDiskRatio": -1.0, "consumeQueueDiskRatio": -1.0}
        ratio = round(1 - usage.free / usage.total, 2) if usage.total else -1.0
        capacity = f"Total : {readable_size(usage.total)}, Free : {readable_size(usage.free)}."
        path = f"{self._runtime.settings.store_path}/commitlog"
        return {
            "commitLogDirCapacity": capacity,
            "commitLogDiskRatio": ratio,
            f"commitLogDiskRatio_{path}": ratio,
            "consumeQueueDiskRatio": ratio,
        }

    def _counts(self) -> dict[str, object]:
        stats = self._state.stats
        put, got = stats.put_total, stats.got_total
        log = self._store.watermarks
        size = log.end - log.min_offset
        found, missed = stats.whole_tps("pulls"), stats.whole_tps("missed")
        return {
            "msgPutTotalTodayNow": put,
            "msgPutTotalTodayMorning": stats.this_morning[0],
            "msgPutTotalYesterdayMorning": stats.yesterday_morning[0],
            "msgGetTotalTodayNow": got,
            "msgGetTotalTodayMorning": stats.this_morning[1],
            "msgGetTotalYesterdayMorning": stats.yesterday_morning[1],
            "putMessageTimesTotal": put,
            "putMessageFailedTimes": sum(self._state.busy.counts.values()),
            "putMessageSizeTotal": size,
            "putMessageAverageSize": size / put if put else 0.0,
            "putTps": _thrice(stats.whole_tps("put")),
            "getFoundTps": _thrice(found),
            "getMissTps": _thrice(missed),
            "getTotalTps": _thrice(found + missed),
            "getTransferredTps": _thrice(stats.whole_tps("got")),
            "pageCacheLockTimeMills": 0,
            "putMessageEntireTimeMax": round(stats.put_times.longest * 1000),
            "putMessageDistributeTime": stats.put_times.spread(),
            "putLatency99": f"{stats.put_times.within(0.99):.2f}",
            "putLatency999": f"{stats.put_times.within(0.999):.2f}",
            "getMessageEntireTimeMax": round(stats.get_times.longest * 1000),
            **{f"busy_{reason}": count for reason, count in self._state.busy.counts.items()},
        }

    def _services(self) -> dict[str, object]:
        """Return failures; empty without a failure, so that tools see what RocketMQ shows.

        For each service: how often it failed, and why it fails now. Also: how many messages were
        set aside or put to another queue, and why messages are refused.
        """
        health = self._store.health
        facts: dict[str, object] = {
            "failures_dispatch": health.dispatch_failures,
            "messagesSetAside": self._store.redelivery.set_aside,
            "messagesMoved": self._store.redelivery.moved,
            "messagesOfDeletedTopics": self._store.redelivery.dead,
            "offsetsPastEnd": self._state.past_end.corrected,
            "commitsPastEnd": self._state.past_end.refused,
            "notWritable": health.not_writable,
        }
        for service in (*health.services, *self._runtime.repeating):
            facts[f"failures_{service.name}"] = service.failures
            facts[f"failure_{service.name}"] = service.failure
        return {name: fact for name, fact in facts.items() if fact}

    def _timers(self) -> dict[str, object]:
        names = ("timerReadBehind", "timerOffsetBehind", "timerCongestNum")
        rates = ("timerEnqueueTps", "timerDequeueTps")
        return {**dict.fromkeys(names, 0), **dict.fromkeys(rates, 0.0)}

    def _queues(self) -> dict[str, object]:
        """Return empty queues: there are no thread pools, so no request waits for one."""
        facts: dict[str, object] = {
            "EndTransactionQueueSize": 0,
            "EndTransactionThreadPoolQueueCapacity": 100_000,
        }
        for pool, capacity in _POOLS.items():
            facts[f"{pool}ThreadPoolQueueSize"] = 0
            facts[f"{pool}ThreadPoolQueueCapacity"] = capacity
            facts[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = 0
        return facts

    def _stats(self, _peer: Peer, request: Command) -> Command:
        header = request.header(StatsHeader)
        found = self._state.stats.find(header.stats_name, header.stats_key)
        if found is None:
            reason = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, body=encode_body(found))


def readable_size(size: int) -> str:
    """Return a count of bytes as "12.3 KiB" (upstream: `MixAll.humanReadableByteCount`)."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    return f"{size / 1024**power:.1f} {_UNITS[power - 1]}iB"


def _thrice(rate: float) -> str:
    """Return a rate three times, as RocketMQ shows its rates of 10, 60 and 600 seconds.

    Here all three are the rate of a minute.
    """
    return f"{rate} {rate} {rate}"


def _elapsed(milliseconds: int) -> str:
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
