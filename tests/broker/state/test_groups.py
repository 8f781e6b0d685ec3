"""What groups must not do with a topic."""

from __future__ import annotations

from pathlib import Path

from mqlake.broker.admin.removal import remove_topic
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ
from tests import simulated
from tests.broker.running import running


def test_what_groups_must_not_do_with_a_topic_ends_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            groups, topics = broker.state.groups, broker.state.topics
            for name in ("a", "b"):
                groups.put(SubscriptionGroup(group_name=name))
                groups.forbid(name, "T", PERM_READ)
            groups.forbid("a", "Other", PERM_READ)
            topics.make("T", 1)
            await remove_topic(broker.state, broker.runtime, "T")
            topics.make("T", 1)
            assert groups.forbidden_table() == {"a": {"Other": PERM_READ}}
            assert groups.forbidden_count == 1

    simulated.run(main())
