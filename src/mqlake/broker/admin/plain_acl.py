"""Change the files of ACL 1.0 (upstream: `AdminBrokerProcessor.updateAndCreateAccessConfig`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from mqlake.auth.plain.access import PlainAccess
from mqlake.auth.plain.changes import (
    delete_account,
    set_white_addresses,
    update_account,
    versions,
)
from mqlake.auth.plain.files import PlainFiles
from mqlake.auth.refusals import shown
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

_UPDATE_FAILED: Final = 209
_DELETE_FAILED: Final = 210
_WHITE_FAILED: Final = 211
"""Codes of RocketMQ 4.9, which mean something else in RocketMQ 5."""

T = TypeVar("T")


class PlainAclAdmin:
    """Answers requests about the files of ACL 1.0."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._changing = asyncio.Lock()

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        code = RequestCode
        return (
            Route(code.UPDATE_AND_CREATE_ACL_CONFIG, self._update, Permission.UPDATE),
            Route(code.DELETE_ACL_CONFIG, self._delete, Permission.UPDATE),
            Route(code.GET_BROKER_CLUSTER_ACL_INFO, self._versions, Permission.READ),
            Route(code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, self._white, Permission.UPDATE),
        )

    async def _update(self, _peer: Peer, request: Command) -> Command:
        fields = request.fields
        await self._change(lambda files: update_account(files, fields), _UPDATE_FAILED)
        return response(request)

    async def _delete(self, _peer: Peer, request: Command) -> Command:
        key = request.fields.get("accessKey", "")
        if not await self._change(lambda files: delete_account(files, key), _DELETE_FAILED):
            reason = f"The accesskey[{shown(key)}] corresponding to accessConfig does not exist."
            raise RemotingError(_DELETE_FAILED, reason)
        return response(request)

    async def _white(self, _peer: Peer, request: Command) -> Command:
        texts = [text for text in request.fields.get("globalWhiteAddrs", "").split(",") if text]
        file = request.fields.get("aclFileFullPath", "")
        await self._change(lambda files: set_white_addresses(files, texts, file), _WHITE_FAILED)
        return response(request)

    async def _versions(self, _peer: Peer, request: Command) -> Command:
        files, settings = self._plain.files, self._runtime.settings
        found = await asyncio.to_thread(versions, files)
        main = found.get(str(files.main), {"counter": 0, "timestamp": 0})
        fields = {
            "version": json.dumps(main),
            "allAclFileVersion": json.dumps(found),
            "brokerName": settings.broker_name,
            "brokerAddr": settings.broker_address,
            "clusterName": settings.broker_cluster_name,
        }
        return response(request, header=fields)

    @property
    def _plain(self) -> PlainAccess:
        if self._state.access.plain is None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "ACL 1.0 is off (aclEnable)")
        return self._state.access.plain

    async def _change(self, change: Callable[[PlainFiles], T], failed: int) -> T:
        """Change a file in a thread, one change after the other, and let it take effect.

        Raises:
            RemotingError: it failed.
        """
        plain = self._plain
        async with self._changing:
            try:
                done = await asyncio.to_thread(change, plain.files)
                await plain.reload()
            except (FormatError, StoreError) as error:
                raise RemotingError(failed, str(error)) from None
        return done
