"""Where a master is, and those of its settings that a copy of its store depends on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.replica.options import ReplicaOptions
from mqlake.store.bounds import LAST_PORT
from mqlake.store.settings import parse_properties

_FILES = {
    "mappedFileSizeCommitLog": "mapedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue": "mapedFileSizeConsumeQueue",
    "maxHashSlotNum": "maxHashSlotNum",
    "maxIndexNum": "maxIndexNum",
}
"""Sizes of files, and what older releases call them."""
_SECONDS = 5.0


class UnusableMasterError(MqlakeError):
    """The master cannot be copied, however often it is asked."""


class FoundMaster(msgspec.Struct, frozen=True):
    """A master that answers.

    Attributes:
        name: the broker name.
        address: the "host:port" at which it serves clients.
        ha_address: the same of its port for slaves.
        files: sizes of its files, by setting.
        ack_wait: seconds that its puts wait for slaves at most; 0 if they do not.
    """

    name: str
    address: str
    ha_address: str
    files: dict[str, int]
    ack_wait: float


async def find_master(cluster: Cluster, options: ReplicaOptions) -> FoundMaster:
    """Return where a master is now.

    Raises:
        UnusableMasterError: it is no master, or replicates in a way that is not supported.
        MqlakeError: no name server or broker answers, or no such broker is registered.
    """
    if ":" not in options.master and not cluster.name_servers:
        raise UnusableMasterError(f"{options.master}: name a name server, with -n HOST:PORT")
    address = (await cluster.broker(options.master)).address
    try:
        answer = await cluster.ask(address, RequestCode.GET_BROKER_CONFIG, seconds=_SECONDS)
    except RemotingError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise UnusableMasterError(
            f"{address} is not a broker: give a master's address, or its name and a name server"
            " (-n)"
        ) from None
    values = parse_properties(bytes(answer.body).decode("utf-8", "replace"))
    role = values.get("brokerRole", "")
    if role == "SLAVE":
        raise UnusableMasterError(f"{address} is a slave: name its master")
    if values.get("enableControllerMode") == "true":
        raise UnusableMasterError(
            f"{address} is in controller mode, whose replication mqlake does not speak yet"
        )
    name = values.get("brokerName", "")
    if not name or (":" not in options.master and name != options.master):
        raise MqlakeError(f"{address}: it calls itself {name!r}, not {options.master!r}")
    waits = role == "SYNC_MASTER"
    return FoundMaster(
        name=name,
        address=address,
        ha_address=options.ha_address or _ha_address(address, values),
        files={
            setting: _number(address, values.get(setting, values.get(old, "")), setting)
            for setting, old in _FILES.items()
            if setting in values or old in values
        },
        ack_wait=_number(address, values.get("slaveTimeout", "3000"), "slaveTimeout") / 1000
        if waits
        else 0,
    )


def _ha_address(address: str, values: Mapping[str, str]) -> str:
    host, _, own = address.rpartition(":")
    port = _number(address, values.get("haListenPort", ""), "haListenPort")
    # mqlake's brokers write 0 for the port after their own.
    port = port or min(_number(address, own, "port") + 1, LAST_PORT)
    if port > LAST_PORT:
        raise MqlakeError(f"{address}: its setting haListenPort is {port}")
    named = values.get("brokerIP2", "")
    if named:
        host = f"[{named}]" if ":" in named else named
    return f"{host}:{port}"


def _number(address: str, text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise MqlakeError(f"{address}: its setting {name} is {text[:50]!r}, not a number")
    return int(text)
