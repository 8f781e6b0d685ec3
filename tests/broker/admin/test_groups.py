from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol.bodies.groups import GroupConfigs, GroupNames
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import (
    DeleteGroupHeader,
    GroupCountHeader,
    GroupForbiddenHeader,
    GroupNameHeader,
)
from mqlake.protocol.headers.slaves import AllTopicsHeader
from tests import simulated
from tests.broker.admin.asking import done, refused
from tests.broker.running import running, to

UPDATE = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
UPDATE_LIST = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
GET, DELETE = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, RequestCode.DELETE_SUBSCRIPTIONGROUP


def test_a_group_is_made_changed_and_removed(tmp_path: Path) -> None:
    async def check() -> None:
        name = GroupNameHeader(group="g")
        async with running(tmp_path) as broker:
            group = SubscriptionGroup(group_name="g", retry_max_times=3)
            await done(broker, UPDATE, body=encode_body(group))
            found = decode_body(dict[str, Any], (await done(broker, GET, name)).body)
            assert found["retryMaxTimes"] == 3
            assert "subscriptionDataSet" not in found, "what upstream has as null is left out"
            assert found["groupRetryPolicy"] == {"type": "CUSTOMIZED"}
            offsets = broker.state.store.core.config.consumer_offsets
            offsets.commit("g", "T", 0, 5)
            await done(broker, DELETE, DeleteGroupHeader(group_name="g"))
            assert offsets.query("g", "T", 0) == 5
            await done(broker, DELETE, DeleteGroupHeader(group_name="g", clean_offset=True))
            assert offsets.query("g", "T", 0) is None
            assert "g" not in broker.state.groups

    simulated.run(check())


def test_a_group_is_on_the_disk_when_its_creation_or_deletion_is_answered(tmp_path: Path) -> None:
    def kept() -> set[str]:
        data = next(tmp_path.rglob("config/subscriptionGroup.json")).read_bytes()
        return set(decode_body(dict[str, Any], data)["subscriptionGroupTable"])

    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, UPDATE, body=encode_body(SubscriptionGroup(group_name="g")))
            assert "g" in kept()
            groups = encode_body(GroupConfigs([SubscriptionGroup(group_name="h")]))
            await done(broker, UPDATE_LIST, body=groups)
            assert "h" in kept()
            await done(broker, DELETE, DeleteGroupHeader(group_name="g"))
            assert "g" not in kept()

    simulated.run(check())


def test_asking_for_a_missing_group_creates_it_if_the_settings_allow(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            found = await done(broker, GET, GroupNameHeader(group="g"))
            assert decode_body(SubscriptionGroup, found.body) == SubscriptionGroup(group_name="g")
            assert "g" in broker.state.groups
            await refused(broker, GET, GroupNameHeader(group="a/b"), match="No group")
        async with running(tmp_path, autoCreateSubscriptionGroup=False) as broker:
            code = await refused(broker, GET, GroupNameHeader(group="h"), match="No group")
            assert code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST

    simulated.run(check())


def test_of_a_list_all_groups_are_made_or_none(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            good, bad = SubscriptionGroup(group_name="g"), SubscriptionGroup(group_name="a/b")
            body = encode_body(GroupConfigs([good, bad]))
            await refused(broker, UPDATE_LIST, body=body, match="illegal")
            assert "g" not in broker.state.groups
            await done(broker, UPDATE_LIST, body=encode_body(GroupConfigs([good])))
            answer = await done(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
            table = decode_body(dict[str, Any], answer.body)["subscriptionGroupTable"]
            assert table["g"]["groupName"] == "g"
            assert answer.header(GroupCountHeader).total_group_num == len(table)

    simulated.run(check())


def test_attributes_of_a_group_are_changes(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:

            def attributes() -> dict[str, str]:
                group = broker.state.groups.get("g")
                return group.attributes if group else {}

            def update(**changes: str) -> bytes:
                return encode_body(SubscriptionGroup(group_name="g", attributes=changes))

            factor = "priority.factor"
            for value in ("0", "100", "37"):
                await done(broker, UPDATE, body=update(**{f"+{factor}": value}))
                assert attributes() == {factor: value}
            await done(broker, UPDATE, body=update())
            assert attributes() == {factor: "37"}, "those that are not named stay"
            for bad in ("101", "-1", "", "1.0", "x", "07"):
                body = update(**{f"+{factor}": bad})
                await refused(broker, UPDATE, body=body, match="use 0 to 100")
            for bad in (factor, "+lite.sub.wildcard", "", "+"):
                body = update(**{bad: "1"})
                await refused(broker, UPDATE, body=body, match="is not supported")
            both = GroupConfigs(
                [
                    SubscriptionGroup(group_name="h"),
                    SubscriptionGroup(group_name="g", attributes={"+x": "1"}),
                ]
            )
            await refused(broker, UPDATE_LIST, body=encode_body(both), match="is not supported")
            assert "h" not in broker.state.groups
            await done(broker, UPDATE, body=update(**{f"-{factor}": ""}))
            assert attributes() == {}

    simulated.run(check())


def test_several_groups_are_deleted_at_once(tmp_path: Path) -> None:
    async def check() -> None:
        code = RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST
        async with running(tmp_path) as broker:
            names = ["g", "h", "i"]
            groups = GroupConfigs([SubscriptionGroup(group_name=name) for name in names])
            await done(broker, UPDATE_LIST, body=encode_body(groups))
            offsets = broker.state.store.core.config.consumer_offsets
            for name in names:
                offsets.commit(name, "T", 0, 5)
            for bad in ([], ["g", " "]):
                body = encode_body(GroupNames(bad))
                await refused(broker, code, body=body, match="blank")
            assert set(names) <= set(broker.state.groups)
            await done(broker, code, body=encode_body(GroupNames(["g", "g", "never"])))
            await done(broker, code, body=encode_body(GroupNames(["h"], clean_offset=True)))
            assert set(names) & set(broker.state.groups) == {"i"}
            assert [offsets.query(name, "T", 0) for name in names] == [5, None, 5]

    simulated.run(check())


def test_a_deletion_ends_only_groups_that_exist_or_have_offsets(tmp_path: Path) -> None:
    async def check() -> None:
        code = RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST
        async with running(tmp_path) as broker:
            await broker.send(to("Orders"))
            await done(broker, UPDATE, body=encode_body(SubscriptionGroup(group_name="g")))
            broker.state.store.core.config.consumer_offsets.commit("offsets", "Orders", 0, 1)
            for _ in range(2):
                names = ["g", "offsets", "never"]
                await done(broker, code, body=encode_body(GroupNames(names, clean_offset=True)))
            never = DeleteGroupHeader(group_name="never", clean_offset=True)
            await done(broker, DELETE, never)
            assert broker.state.store.incarnations.groups.keys() == {"g", "offsets"}

            header = AllTopicsHeader(incarnations=True)
            answer = await done(broker, RequestCode.GET_ALL_TOPIC_CONFIG, header)
            found = decode_body(dict[str, Any], answer.body)["incarnations"]
            ended = broker.state.store.incarnations.ended()
            assert found["groups"] == ended.groups
            assert [found["topics"], found["others"]] == [ended.topics, ended.others]
            assert found["deletions"] == ended.deletions

    simulated.run(check())


def kept_bits(path: Path) -> dict[str, dict[str, int]]:
    data = next(path.rglob("config/subscriptionGroup.json")).read_bytes()
    return decode_body(dict[str, Any], data)["forbiddenTable"]


def test_a_group_may_be_forbidden_to_pull_a_topic(tmp_path: Path) -> None:
    code = RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN

    async def check() -> None:
        async with running(tmp_path, maxAnswerEntries=1000) as broker:

            async def ask(topic: str = "T", *, readable: bool | None = None) -> bool:
                header = GroupForbiddenHeader(group="g", topic=topic, readable=readable)
                answer = decode_body(dict[str, Any], (await done(broker, code, header)).body)
                assert (answer["group"], answer["topic"]) == ("g", topic)
                return answer["readable"]

            assert await ask()
            assert await ask(readable=True)
            unknown = GroupForbiddenHeader(group="g", topic="T", readable=False)
            assert (
                await refused(broker, code, unknown, match="subscription group [g]")
                == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
            await done(broker, UPDATE, body=encode_body(SubscriptionGroup(group_name="g")))
            assert (
                await refused(broker, code, unknown, match="topic[T] not exist")
                == ResponseCode.TOPIC_NOT_EXIST
            )
            for number in range(1000):
                broker.state.topics.make(f"T{number}", 1)
            broker.state.topics.make("T", 1)
            assert not await ask(readable=False)
            assert not await ask("T0", readable=False)
            assert (await ask(), await ask("T1")) == (False, True)
            assert broker.state.groups.forbidden("g", "T") == PERM_READ
            assert kept_bits(tmp_path) == {"g": {"T": PERM_READ, "T0": PERM_READ}}
            assert await ask(readable=True)
            assert not await ask("T0"), "the others stay"
            for number in range(1000):
                broker.state.groups.forbid("g", f"T{number}", PERM_READ)
            assert await refused(broker, code, unknown, match="1000 topics are forbidden")
            await done(broker, DELETE, DeleteGroupHeader(group_name="g"))
            assert broker.state.groups.forbidden_count == 0

    simulated.run(check())
