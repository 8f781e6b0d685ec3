"""Name servers: their settings, their KV configuration, and write permissions."""

from __future__ import annotations

from mqlake.admin.admin import Admin
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.namesrv import (
    AddWritePermResponseHeader,
    BrokerNameHeader,
    GetKVConfigResponseHeader,
    KVConfigHeader,
    PutKVConfigHeader,
    WipeWritePermResponseHeader,
)
from mqlake.store.settings import parse_properties


async def config(admin: Admin) -> dict[str, dict[str, str]]:
    """Return the settings of each name server."""
    found: dict[str, dict[str, str]] = {}
    for address in admin.name_servers:
        answer = await admin.ask(address, RequestCode.GET_NAMESRV_CONFIG)
        found[address] = parse_properties(bytes(answer.body).decode("utf-8", "replace"))
    return found


async def put(admin: Admin, namespace: str, key: str, value: str) -> None:
    """Set a value in every name server."""
    header = PutKVConfigHeader(namespace=namespace, key=key, value=value)
    await admin.tell_names(RequestCode.PUT_KV_CONFIG, header)


async def get(admin: Admin, namespace: str, key: str) -> str | None:
    """Return a value."""
    header = KVConfigHeader(namespace=namespace, key=key)
    answer = await admin.ask_names(RequestCode.GET_KV_CONFIG, header)
    return answer.header(GetKVConfigResponseHeader).value


async def delete(admin: Admin, namespace: str, key: str) -> None:
    """Delete a value from every name server."""
    header = KVConfigHeader(namespace=namespace, key=key)
    await admin.tell_names(RequestCode.DELETE_KV_CONFIG, header)


async def wipe_write_permission(admin: Admin, broker: str) -> dict[str, int]:
    """Revoke a broker's write permission; return the number of topics, by name server."""
    header = BrokerNameHeader(broker_name=broker)
    answers = await admin.tell_names(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
    counts = [answer.header(WipeWritePermResponseHeader).wipe_topic_count for answer in answers]
    return dict(zip(admin.name_servers, counts, strict=True))


async def add_write_permission(admin: Admin, broker: str) -> dict[str, int]:
    """Restore a broker's write permission; return the number of topics, by name server."""
    header = BrokerNameHeader(broker_name=broker)
    answers = await admin.tell_names(RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
    counts = [answer.header(AddWritePermResponseHeader).add_topic_count for answer in answers]
    return dict(zip(admin.name_servers, counts, strict=True))
