"""KV configuration, and the name server's own settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from mqlake.errors import FormatError, StoreError
from mqlake.namesrv.kv_config import keep
from mqlake.namesrv.settings import FIXED, NamesrvSettings, as_properties, changed
from mqlake.namesrv.state import NameServerState
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import (
    GetKVConfigResponseHeader,
    GetKVListByNamespaceHeader,
    KVConfigHeader,
    PutKVConfigHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.shares import owner_of
from mqlake.store.config.properties_file import edited
from mqlake.store.settings import parse_properties, properties_text

_log: Final = logging.getLogger("mqlake.namesrv")


class ConfigurationRequests:
    """Serves the settings of administrators."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state
        self._kv = state.kv
        self._writing = asyncio.Lock()

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.PUT_KV_CONFIG, self._put, Permission.UPDATE),
            Route(RequestCode.GET_KV_CONFIG, self._get, Permission.READ),
            Route(RequestCode.DELETE_KV_CONFIG, self._delete, Permission.UPDATE),
            Route(RequestCode.GET_KVLIST_BY_NAMESPACE, self._namespace, Permission.READ),
            Route(RequestCode.GET_NAMESRV_CONFIG, self._settings, Permission.READ),
            Route(RequestCode.UPDATE_NAMESRV_CONFIG, self._update, Permission.UPDATE),
        )

    async def _put(self, peer: Peer, request: Command) -> Command:
        header = request.header(PutKVConfigHeader)
        settings, owner = self._state.settings, owner_of(peer.address)
        await self._kv.put(header.namespace, header.key, header.value, settings, owner=owner)
        return response(request)

    def _get(self, _: Peer, request: Command) -> Command:
        header = request.header(KVConfigHeader)
        value = self._kv.get(header.namespace, header.key)
        if value is None:
            raise RemotingError(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {header.namespace} Key: {header.key}",
            )
        return response(request, header=GetKVConfigResponseHeader(value=value))

    async def _delete(self, _: Peer, request: Command) -> Command:
        header = request.header(KVConfigHeader)
        await self._kv.delete(header.namespace, header.key)
        return response(request)

    def _namespace(self, _: Peer, request: Command) -> Command:
        namespace = request.header(GetKVListByNamespaceHeader).namespace
        table = self._kv.namespace(namespace)
        if table is None:
            raise RemotingError(
                ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}"
            )
        return response(request, body=encode_body(KVTable(table)))

    def _settings(self, _: Peer, request: Command) -> Command:
        return response(request, body=self._text())

    async def _update(self, peer: Peer, request: Command) -> Command:
        values = _parsed(request)
        settings = self._state.settings
        if not (FIXED | set(settings.config_black_list.split(";"))).isdisjoint(values):
            raise RemotingError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            self._state.settings = changed(settings, values)
        except StoreError as error:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        _log.info("%s changed settings: %s", peer.address, ", ".join(values))
        if settings.config_store_path:
            async with self._writing:
                shown = as_properties(self._state.settings)
                kept = {name: shown[name] for name in values if name in shown}
                await asyncio.to_thread(_keep, settings.config_store_path, kept, self._text())
        return response(request)

    def _text(self) -> bytes:
        pairs = as_properties(self._state.settings).items()
        return properties_text(pairs).encode()


def _parsed(request: Command) -> dict[str, str]:
    try:
        return parse_properties(bytes(request.body).decode("utf-8", "replace"), is_strict=True)
    except FormatError as error:
        raise RemotingError(
            ResponseCode.INVALID_PARAMETER, f"the settings cannot be read: {error}"
        ) from None


def _keep(name: str, changed: Mapping[str, str], whole: bytes) -> None:
    """Write settings that were changed to a file, whose other lines stay; or all to a new one."""
    path = Path(name).expanduser()
    if not path.exists():
        keep(name, whole)
        return
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    keep(name, edited(text, NamesrvSettings, changed).encode("utf-8", "surrogateescape"))
