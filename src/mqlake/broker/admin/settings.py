"""Show the broker's settings, and change those that may be changed while it runs."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from mqlake.broker.parts import Parts
from mqlake.broker.settings import BrokerSettings, make_broker_settings
from mqlake.errors import StoreError
from mqlake.formats.config import DataVersion
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ConfigVersionHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.settings import parse_properties

FIXED = frozenset(
    (
        "brokerClusterName",
        "brokerName",
        "brokerId",
        "brokerRole",
        "brokerIP1",
        "bindAddress",
        "listenPort",
        "namesrvAddr",
        "storePathRootDir",
        "storePathCommitLog",
        "mappedFileSizeCommitLog",
        "mappedFileSizeConsumeQueue",
        "maxHashSlotNum",
        "maxIndexNum",
        "messageIndexEnable",
        "indexDialect",
        "messageDelayLevel",
        "flushDiskType",
        "enabledAppendPropCRC",
        "forceVerifyPropCRC",
        "timerWheelEnable",
        "msgTraceTopicName",
        "maxMessageSize",
        "autoMessageVersionOnTopicLen",
        "osPageCacheBusyTimeOutMills",
        "flushIntervalCommitLog",
        "flushIntervalConsumeQueue",
        "cleanResourceInterval",
        "deleteCommitLogFilesInterval",
        "flushConsumerOffsetInterval",
        "flushDelayOffsetInterval",
        "transactionCheckInterval",
        "timerFlushIntervalMs",
        "timerPrecisionMs",
        "timerRollWindowSlot",
        "reviveQueueNum",
        "registerNameServerPeriod",
    )
)
"""Settings that take effect at a start only."""


ABSENT = {
    "slaveReadEnable": "false",
    "useTLS": "false",
    "clientCallbackExecutorThreads": str(os.cpu_count() or 1),
}
"""What tools read beside the settings: what a broker has not, and the machine's processors."""


class SettingsAdmin:
    """Answers requests about settings. A change holds until the broker stops."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._version = DataVersion(timestamp=parts.store.core.clock.milliseconds())

    def routes(self) -> Sequence[Route]:
        """Return what serves each request code."""
        return (
            Route(RequestCode.GET_BROKER_CONFIG, self._get, Permission.READ),
            Route(RequestCode.UPDATE_BROKER_CONFIG, self._update, Permission.UPDATE),
        )

    def _get(self, _peer: Peer, request: Command) -> Command:
        values = {**_texts(self._parts.settings), **ABSENT}
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        version = json.dumps(msgspec.to_builtins(self._version), separators=(",", ":"))
        return response(request, header=ConfigVersionHeader(version=version), body=text.encode())

    def _update(self, _peer: Peer, request: Command) -> Command:
        changes = parse_properties(bytes(request.body).decode("utf-8", "replace"))
        fixed = sorted(changes.keys() & FIXED)
        if fixed:
            reason = f"{', '.join(fixed)}: takes effect at a start only; change it in broker.conf"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        settings = self._parts.settings
        # RocketMQ passes over names that it does not know.
        known = {name: value for name, value in changes.items() if name in _names()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                new = make_broker_settings({**msgspec.to_builtins(settings), **known})
        except StoreError as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from None
        for name in known:
            attribute = _names()[name]
            # All parts of a broker hold the one object, and look at it each time.
            msgspec.structs.force_setattr(settings, attribute, getattr(new, attribute))
        for function in self._parts.on_settings:
            function()
        self._version = msgspec.structs.replace(
            self._version,
            counter=self._version.counter + 1,
            timestamp=self._parts.store.core.clock.milliseconds(),
        )
        if "brokerPermission" in known:
            self._parts.topics.on_change()
        return response(request)


def _names() -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(BrokerSettings)}


def _texts(settings: BrokerSettings) -> dict[str, str]:
    return {name: _text(getattr(settings, attribute)) for name, attribute in _names().items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.name if isinstance(value, Enum) else str(value)
