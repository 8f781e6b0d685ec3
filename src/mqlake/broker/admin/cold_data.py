"""Limits on reading what is no longer in the page cache.

mqlake has no such limits: it reads mapped files in the page cache's own order. Thresholds are kept
and shown, as tools expect, and limit nothing (upstream: `ColdDataCgCtrService`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol import naming
from mqlake.protocol.body import check_size, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ReadAheadHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.settings import parse_properties

_GROUP_THRESHOLD: Final = 3 << 20
_WHOLE_THRESHOLD: Final = 100 << 20
_LONGEST_BODY: Final = 65_536
_LONGEST_NUMBER: Final = 20
_SHOWN: Final = 80
_NORMAL, _RANDOM = 0, 1
"""Values of `madvise`."""


class ColdDataAdmin:
    """Answers requests about cold data."""

    def __init__(self, _state: BrokerState, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self._thresholds: dict[str, int] = {}

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, self._update, Permission.UPDATE),
            Route(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, self._remove, Permission.UPDATE),
            Route(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, self._get, Permission.READ),
            Route(RequestCode.SET_COMMITLOG_READ_MODE, self._read_ahead, Permission.UPDATE),
        )

    def _update(self, _peer: Peer, request: Command) -> Command:
        check_size(request, _LONGEST_BODY, "at most")
        for group, text in parse_properties(bytes(request.body).decode("utf-8", "replace")).items():
            self._set(group, text)
        return response(request)

    def _set(self, group: str, text: str) -> None:
        try:
            threshold = int(text) if len(text) <= _LONGEST_NUMBER else None
        except ValueError:
            threshold = None
        if threshold is None:
            reason = f"the threshold of {group[:_SHOWN]} is not a number: {text[:_SHOWN]}"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        if (fault := naming.group_fault(group)) is not None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
        most = self._runtime.settings.max_subscription_group_nums
        if len(self._thresholds) >= most and group not in self._thresholds:
            reason = f"{most} groups have a threshold already (maxSubscriptionGroupNums)"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        self._thresholds[group] = threshold

    def _remove(self, _peer: Peer, request: Command) -> Command:
        self._thresholds.pop(bytes(request.body).decode("utf-8", "replace"), None)
        return response(request)

    def _get(self, _peer: Peer, request: Command) -> Command:
        body = {
            "runtimeTable": {},
            "configTable": self._thresholds,
            "cgColdReadThreshold": _GROUP_THRESHOLD,
            "globalColdReadThreshold": _WHOLE_THRESHOLD,
            "globalAcc": 0,
        }
        return response(request, body=encode_body(body))

    def _read_ahead(self, _peer: Peer, request: Command) -> Command:
        mode = request.header(ReadAheadHeader).mode
        if mode not in (_NORMAL, _RANDOM):
            reason = "set commitlog readahead mode param value error"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        return response(request, remark=f"set commitlog readahead mode success, mode: {mode}")
