"""Remove what is no longer needed; and requests about features that mqlake does not have."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ExportConfigsHeader, TimerEngineHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

_CHECK_OK = 0
_EXPORTED = frozenset(("topics", "subscriptiongroups", "consumeroffsets"))
_FILE_ENGINE, _ROCKSDB_ENGINE = "F", "R"


class MaintenanceAdmin:
    """Answers requests to clean up, and requests about RocksDB."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.DELETE_EXPIRED_COMMITLOG, self._clean, Permission.UPDATE),
            Route(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, self._clean_queues, Permission.UPDATE),
            Route(RequestCode.CLEAN_UNUSED_TOPIC, self._clean_topics, Permission.UPDATE),
            Route(RequestCode.RESET_MASTER_FLUSH_OFFSET, self._done, Permission.UPDATE),
            Route(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, self._check_queues, Permission.READ),
            Route(RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, self._export, Permission.READ),
            Route(RequestCode.SWITCH_TIMER_ENGINE, self._switch_timer, Permission.UPDATE),
        )

    def _clean(self, _peer: Peer, request: Command) -> Command:
        self._state.store.retention.clean()
        return response(request)

    def _clean_queues(self, _peer: Peer, request: Command) -> Command:
        """Remove files of queues that point before the log's start."""
        self._state.store.retention.clean_queues()
        return response(request)

    async def _clean_topics(self, _peer: Peer, request: Command) -> Command:
        """Remove the queues of deleted topics."""
        store, topics = self._state.store, self._state.topics
        for topic in store.reads.topics():
            is_one = topic in topics or topics.is_system(topic)
            if not is_one and not topics.is_being_deleted(topic):
                with topics.deleting(topic):
                    await store.removals.remove(topic)
        return response(request)

    def _check_queues(self, _peer: Peer, request: Command) -> Command:
        """There is only one kind of consume queue here, so there is nothing to compare."""
        body = {"checkStatus": _CHECK_OK, "checkResult": "this store has no RocksDB consume queues"}
        return response(request, body=encode_body(body))

    def _export(self, _peer: Peer, request: Command) -> Command:
        """Tables are JSON already, as with an upstream broker that has none in RocksDB."""
        wanted = request.header(ExportConfigsHeader).config_type.split(";")
        for name in filter(None, wanted):
            if name.strip().lower() not in _EXPORTED:
                reason = f"Unknown config type: {name}"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        return response(request, remark="export done.")

    def _switch_timer(self, _peer: Peer, request: Command) -> Command:
        """There is only one timer engine, that of files: switching to it changes nothing."""
        invalid = ResponseCode.INVALID_PARAMETER
        if not self._runtime.settings.timer_wheel_enable:
            raise RemotingError(invalid, "broker timerWheelEnable is false")
        engine = request.header(TimerEngineHeader).engine
        if engine == _ROCKSDB_ENGINE:
            reason = "this broker has no timer engine on RocksDB, only the one of files (F)"
            raise RemotingError(invalid, reason)
        if engine != _FILE_ENGINE:
            raise RemotingError(invalid, "param error")
        return response(request, remark="switch timer engine success")

    def _done(self, _peer: Peer, request: Command) -> Command:
        """A master's own offsets do not change (upstream: only a slave's do)."""
        return response(request)
