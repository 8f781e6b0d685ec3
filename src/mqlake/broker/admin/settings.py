"""Show the broker's settings, and change those that may be changed while it runs.

Upstream: `AdminBrokerProcessor.updateBrokerConfig`, `Configuration`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import NOW, RESTART, ROLE, BrokerSettings, make_broker_settings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import FormatError, StoreError
from mqlake.formats.config import DataVersion
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import ConfigVersionHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.settings import BrokerRole, parse_properties, properties_text, texts

_PROCESSORS: Final = str(os.cpu_count() or 1)

_LONGEST: Final = 32_768
"""Maximum bytes of a request to change settings: all settings need a sixth of that."""

_log: Final = logging.getLogger(__name__)


class SettingsAdmin:
    """Answers requests about settings.

    A change is durable before it takes effect, and takes effect before it is answered.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._version = DataVersion(timestamp=state.store.clock.milliseconds())
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        runtime.on_stop.append(self._stop)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_BROKER_CONFIG, self._get, Permission.READ),
            Route(RequestCode.UPDATE_BROKER_CONFIG, self._update, Permission.UPDATE),
        )

    def _get(self, _peer: Peer, request: Command) -> Command:
        settings = self._runtime.settings
        # What tools read in addition.
        values = {
            **texts(settings),
            "useTLS": "true" if settings.tls_enable else "false",
            "clientCallbackExecutorThreads": _PROCESSORS,
        }
        text = properties_text(values.items())
        version = json.dumps(msgspec.to_builtins(self._version), separators=(",", ":"))
        return response(request, header=ConfigVersionHeader(version=version), body=text.encode())

    async def _update(self, peer: Peer, request: Command) -> Command:
        if self._is_stopped:
            reason = "settings can no longer be changed: the broker is stopping"
            raise RemotingError(ResponseCode.SERVICE_NOT_AVAILABLE, reason)
        if len(request.body) > _LONGEST:
            reason = (
                f"the settings have {len(request.body)} bytes; the maximum is {_LONGEST}: send "
                "fewer"
            )
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        changes = _parsed(request)
        if refused := sorted(changes.keys() & RESTART):
            reason = f"{', '.join(refused)}: takes effect at a restart only; change it in the"
            raise RemotingError(
                ResponseCode.NO_PERMISSION, f"{reason} broker.conf, and start the broker again"
            )
        if self._runtime.settings.enable_controller_mode and changes.keys() & ROLE:
            reason = "the controller says who the master is; use mqadmin electMaster"
            raise RemotingError(ResponseCode.NO_PERMISSION, reason)
        # RocketMQ ignores unknown names.
        known = {name: value for name, value in changes.items() if name in NOW | ROLE}
        # A change is completed even if its client disconnects or the broker stops.
        task = asyncio.create_task(self._change(known))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)
        _log.info("%s changed settings: %s", peer.address, known)
        return response(request)

    async def _change(self, values: Mapping[str, str]) -> None:
        async with self._changing:
            values = _with_id(self._runtime.settings, values)
            new = _with(self._runtime.settings, values)
            shown = texts(new)
            kept = {name: shown[name] for name in values}
            try:
                await asyncio.to_thread(self._runtime.settings_file.change, BrokerSettings, kept)
            except StoreError as error:
                reason = f"the settings are unchanged, because they could not be stored: {error}"
                _log.error("%s", reason)
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason) from None
            if ROLE.isdisjoint(values):
                self._runtime.live.replace(new)
            else:
                await self._switch(new)
            self._version = msgspec.structs.replace(
                self._version,
                counter=self._version.counter + 1,
                timestamp=self._state.store.clock.milliseconds(),
            )

    async def _switch(self, new: BrokerSettings) -> None:
        """Promote or demote this broker.

        Raises:
            RemotingError: SYSTEM_ERROR: the broker keeps its old role.
        """
        old = texts(self._runtime.settings)
        try:
            await self._state.replication.switch(new)
        except Exception as error:
            kept = {name: old[name] for name in ROLE}
            await asyncio.to_thread(self._runtime.settings_file.change, BrokerSettings, kept)
            raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from error
        # Only now does a new master listen for slaves.
        self._state.names.changed()

    async def _stop(self) -> None:
        """Wait for running changes before the store is closed: they may write to its directory."""
        self._is_stopped = True
        await asyncio.gather(*self._changes, return_exceptions=True)


def _parsed(request: Command) -> dict[str, str]:
    try:
        return parse_properties(bytes(request.body).decode("utf-8", "replace"), is_strict=True)
    except FormatError as error:
        raise RemotingError(
            ResponseCode.INVALID_PARAMETER, f"the settings cannot be read: {error}"
        ) from None


def _with_id(settings: BrokerSettings, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return changes in which a new role has a broker id: 0 for a master, 1 for a slave."""
    role = values.get("brokerRole")
    if role is None or "brokerId" in values:
        return values
    is_slave = role == BrokerRole.SLAVE.value
    if is_slave == settings.is_slave:
        return values
    return {**values, "brokerId": "1" if is_slave else "0"}


def _with(settings: BrokerSettings, values: Mapping[str, str]) -> BrokerSettings:
    """Return settings with new values.

    Raises:
        RemotingError: INVALID_PARAMETER: a setting cannot have the value.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_broker_settings({**msgspec.to_builtins(settings), **values})
    except StoreError as error:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, str(error)) from None
