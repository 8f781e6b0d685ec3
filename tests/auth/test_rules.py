"""Every request code of the servers has a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.auth.needs import PUB, OnCluster, OnTopic, Question, words
from mqlake.auth.rules import BROKER, NAME_SERVER, UNKNOWN
from mqlake.namesrv.name_server import NameServer
from mqlake.protocol.codes import RequestCode
from tests.broker.test_routes import routes_of


def _nothing(_: int) -> None:
    return None


QUESTION = Question({}, b"", "main", _nothing)


def test_every_route_has_a_rule_and_every_rule_a_route(tmp_path: Path) -> None:
    assert {int(route.code) for route in routes_of(tmp_path)} == set(BROKER)
    assert {int(route.code) for route in NameServer().routes} == set(NAME_SERVER)


def test_the_permission_for_a_send_follows_from_its_topic() -> None:
    """The lane remembers it by the user, the address and the topic: see `LaneUsers`."""
    for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
        assert BROKER[code] == (OnTopic(PUB, "b"),)


def test_only_some_requests_are_open_to_every_user() -> None:
    """A rule that yields nothing asks for a signature only."""
    found: set[RequestCode] = set()
    for code, rule in (BROKER | NAME_SERVER).items():
        try:
            if not [need for part in rule for need in part.find(QUESTION)]:
                found.add(RequestCode(code))
        except Exception:  # noqa: BLE001 (a body is missing)
            continue
    assert found == {
        RequestCode.UNREGISTER_CLIENT,  # of a producer
        RequestCode.CHECK_CLIENT_CONFIG,  # of nothing
        RequestCode.BATCH_ACK_MESSAGE,  # of nothing
        RequestCode.LITE_SUBSCRIPTION_CTL,  # of nothing
    }


def test_a_code_without_a_rule_needs_the_cluster() -> None:
    (part,) = UNKNOWN
    assert isinstance(part, OnCluster)
    assert words(part.actions) == "Update"


@pytest.mark.parametrize("code", sorted(BROKER | NAME_SERVER))
def test_rules_are_described(code: int) -> None:
    rule = (BROKER | NAME_SERVER)[code]
    assert rule
    assert all(":" in part.text for part in rule)
