"""What a broker and a name server serve, and what it takes to be allowed to ask."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.permission import Permission
from mqlake.remoting.route import Route
from tests import simulated
from tests.broker.running import running


def routes_of(path: Path) -> list[Route]:
    found: list[Route] = []

    async def run() -> None:
        async with running(path) as broker:
            found.extend(broker.broker.routes)

    simulated.run(run())
    return found


def test_each_code_has_one_route_and_each_route_a_permission(tmp_path: Path) -> None:
    for routes in (routes_of(tmp_path), NameServer().routes):
        assert max(Counter(route.code for route in routes).values()) == 1
        assert [route.code for route in routes if route.permission is None] == []


def test_one_of_several_permissions_is_enough_where_it_is_upstream(tmp_path: Path) -> None:
    """Upstream: `DefaultAuthorizationContextBuilder`."""
    publish, subscribe, read = Permission.PUBLISH, Permission.SUBSCRIBE, Permission.READ
    found = {
        RequestCode(route.code): route.permission
        for route in (*routes_of(tmp_path), *NameServer().routes)
        if route.permission is not None and len(route.permission) > 1
    }
    assert found == {
        RequestCode.GET_ROUTEINFO_BY_TOPIC: publish | subscribe | read,
        RequestCode.HEART_BEAT: publish | subscribe,
        RequestCode.UNREGISTER_CLIENT: publish | subscribe,
        RequestCode.CHECK_CLIENT_CONFIG: publish | subscribe,
        RequestCode.QUERY_MESSAGE: subscribe | read,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: subscribe | read,
        RequestCode.QUERY_CONSUMER_OFFSET: subscribe | read,
        RequestCode.UPDATE_CONSUMER_OFFSET: subscribe | Permission.UPDATE,
    }


def test_who_may_only_read_changes_nothing(tmp_path: Path) -> None:
    """Names of codes say what they do; a new one is to be looked at here."""
    reading = Permission.READ | Permission.LIST
    changing = (
        "AUTH_CREATE",
        "AUTH_UPDATE",
        "AUTH_DELETE",
        "UPDATE",
        "CREATE",
        "DELETE",
        "PUT",
        "SET",
        "REMOVE",
        "CLEAN",
        "RESET",
        "SEND",
    )
    names = {
        RequestCode(route.code).name
        for route in (*routes_of(tmp_path), *NameServer().routes)
        if route.permission is not None and route.permission & reading
    }
    assert {name for name in names if name.startswith(changing)} == set()
    shown = ("GET", "QUERY", "VIEW", "SEARCH", "AUTH_GET", "AUTH_LIST")
    assert {name for name in names if not name.startswith(shown)} == {
        "CHECK_ROCKSDB_CQ_WRITE_PROGRESS",
        "EXPORT_ROCKSDB_CONFIG_TO_JSON",
        "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
        "POLLING_INFO",
    }
