"""The producers and consumers of one client instance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.client.errors import ClientError
from mqlake.client.members import ClientMembers


def consumer(group: str) -> Any:
    return SimpleNamespace(group=group)


def test_a_second_consumer_of_a_group_under_one_client_id_is_refused() -> None:
    members, first, second = ClientMembers(), consumer("billing"), consumer("billing")
    members.add_consumer(first, "10.0.0.1@shop")
    with pytest.raises(ClientError, match="@shop already has a consumer of group billing"):
        members.add_consumer(second, "10.0.0.1@shop")
    assert members.consumers == {"billing": first}
    assert not members.remove_consumer(second)
    members.add_consumer(consumer("reports"), "10.0.0.1@shop")
    assert members.remove_consumer(first)
    members.add_consumer(second, "10.0.0.1@shop")
    assert members.consumers["billing"] is second
