"""Who has created what: it is the same record for shares, limits of addresses and of users."""

from __future__ import annotations

import msgspec
import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.creators import TOPICS, Creators
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

SETTINGS = msgspec.structs.replace(
    BrokerSettings(), max_topics_per_address=3, max_topics_per_user=2, max_address_share=10
)


def refuse(reason: str, text: str) -> RemotingError:
    return RemotingError(ResponseCode.SYSTEM_ERROR, f"{reason}: {text}")


def signer(client: str) -> str | None:
    return "anna" if client.endswith(":1") else None


@pytest.fixture
def creators() -> Creators:
    return Creators(TOPICS, lambda: SETTINGS, signer, refuse)


def test_limits_count_what_exists(creators: Creators) -> None:
    for name in ("a", "b"):
        creators.check("10.0.0.1:1")
        creators.add(name, "10.0.0.1:1")
    with pytest.raises(RemotingError, match="user anna may create 2 topics"):
        creators.check("10.0.0.1:1")
    creators.check("10.0.0.1:2")
    creators.add("c", "10.0.0.1:2")
    with pytest.raises(RemotingError, match=r"10\.0\.0\.1 may create 3 topics"):
        creators.check("10.0.0.1:2")
    assert creators.creator("c") == "10.0.0.1"
    creators.remove("a")
    assert creators.creator("a") is None
    creators.check("10.0.0.1:1")


def test_what_a_master_does_not_have_counts_no_longer(creators: Creators) -> None:
    for name in ("a", "b", "c"):
        creators.add(name, "10.0.0.1:2")
    for _ in creators.keep({"b", "of the master"}):
        pass
    creators.check("10.0.0.1:2")
    assert [creators.creator(name) for name in ("a", "b", "c")] == [None, "10.0.0.1", None]


def test_more_than_the_share_of_a_client_is_refused_in_a_table_that_is_half_full(
    creators: Creators,
) -> None:
    creators.add("a", "10.0.0.1:2")
    assert creators.refusal("10.0.0.1:2", 1, 10, "maxTopicNums") is None
    assert "maxAddressShare" in (creators.refusal("10.0.0.1:2", 6, 10, "maxTopicNums") or "")
    assert creators.refusal("10.0.0.2:2", 6, 10, "maxTopicNums") is None
