"""Who may make which request: every code, with each of its permissions given and missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pytest

from mqlake.auth.accounts import Accounts
from mqlake.auth.authorization import Authorization, Scope
from mqlake.auth.metadata import AccountFile
from mqlake.auth.policies import Acl, Action, Decision, Entry, PolicyType
from mqlake.auth.resource import Resource
from mqlake.auth.rules import BROKER
from mqlake.auth.sources import network
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserType
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests.auth.requests import EXAMPLES, HALF, OFFSET, body_of

PEER = "10.0.0.1:5000"
NORMAL, SUPER = User("me", "password-3"), User("root", "password-4", UserType.SUPER)
TOPICS = {OFFSET: "t", HALF: "t"}


def authorization(entries: Iterable[Entry], whitelist: Sequence[int] = ()) -> Authorization:
    acl = Acl().merged(PolicyType.CUSTOM, entries)
    state = AuthState({"me": NORMAL, "root": SUPER}, {"me": acl} if acl.entries else {})
    accounts = Accounts(AccountFile(LocalOwnedDirectory("/nowhere")), state)
    return Authorization(accounts.decisions, whitelist, Scope(BROKER, "main", TOPICS.get))


def entry(text: str, decision: Decision = Decision.ALLOW, *networks: str) -> Entry:
    """Return the entry for a text such as "Topic:t Sub"."""
    resource, _, action = text.rpartition(" ")
    parsed = Resource.parse(resource)
    assert parsed is not None
    sources = tuple(network(each) for each in networks)
    return Entry(parsed, frozenset({Action(action)}), sources, decision)


def asked(code: RequestCode) -> Command:
    example = EXAMPLES[code]
    return request(code, dict(example.fields), body_of(example))


def alternatives(code: RequestCode) -> list[list[str]]:
    """Return all sets of single permissions with which a request is allowed."""
    choices: list[list[str]] = []
    for need in EXAMPLES[code].needs:
        resource, _, actions = need.rpartition(" ")
        choices.append([f"{resource} {action}" for action in actions.split("|")])
    return [list(each) for each in product(*choices)]


def refusal(check: Authorization, command: Command, user: User | None = NORMAL) -> str | None:
    found = _refusal(check, command, user)
    assert user is None or check.permits(user, command, PEER) == (found is None)
    return found


def _refusal(check: Authorization, command: Command, user: User | None) -> str | None:
    try:
        check.check(user, command, PEER)
    except RemotingError as error:
        return error.remark if error.code == ResponseCode.NO_PERMISSION else None
    return None


def test_every_code_has_an_example() -> None:
    assert set(EXAMPLES) == set(BROKER)


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.name)
def test_a_request_needs_exactly_its_permissions(code: RequestCode) -> None:
    command = asked(code)
    assert refusal(authorization(()), command)
    assert refusal(authorization(()), command, None) == "username cannot be null."
    assert refusal(authorization(()), command, SUPER) is None
    assert refusal(authorization((), [code]), command, None) is None
    for granted in alternatives(code):
        entries = [entry(each) for each in granted]
        assert refusal(authorization(entries), command) is None, granted
        for number, text in enumerate(granted):
            others = [*entries[:number], *entries[number + 1 :]]
            resource, _, action = text.rpartition(" ")
            assert resource in (refusal(authorization(others), command) or ""), text
            denied = [*others, entry(text, Decision.DENY), entry(f"* {action}")]
            remark = refusal(authorization(denied), command) or ""
            assert remark.endswith("the decision is deny."), text
            elsewhere = [*others, entry(text, Decision.ALLOW, "10.0.0.2", "fd00::/8")]
            assert refusal(authorization(elsewhere), command), text
            here = [*others, entry(text, Decision.ALLOW, "10.0.0.0/31")]
            assert refusal(authorization(here), command) is None, text
            kind, _, name = resource.partition(":")
            near = [*others, entry(f"{kind}:{name}x {action}"), entry(f"{kind}:{name}x* {action}")]
            assert refusal(authorization(near), command), text


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.name)
def test_other_actions_are_not_enough(code: RequestCode) -> None:
    known = {action.value for action in Action} - {"All", "Any"}
    for need in EXAMPLES[code].needs:
        resource, _, actions = need.rpartition(" ")
        others = [entry(each) for each in alternatives(code)[0] if not each.startswith(resource)]
        for action in sorted(known - set(actions.split("|"))):
            wrong = [*others, entry(f"{resource} {action}")]
            assert refusal(authorization(wrong), asked(code)), action


@pytest.mark.parametrize("resource", ["*", "Cluster:*", "Topic:*", "Group:*"])
def test_all_resources_of_a_kind(resource: str) -> None:
    check = authorization([entry(f"{resource} All")])
    for code, example in EXAMPLES.items():
        kinds = {need.partition(":")[0] for need in example.needs}
        is_allowed = resource == "*" or kinds == {resource.partition(":")[0]}
        assert (refusal(check, asked(code)) is None) is is_allowed, code


def test_a_code_without_a_rule_needs_the_cluster() -> None:
    command = request(4711, {"topic": "t"})
    assert refusal(authorization([entry("Topic:* All"), entry("Cluster:main Get")]), command)
    assert refusal(authorization([entry("Cluster:main Update")]), command) is None


RETRY_OF_ANOTHER = "the retry topic %RETRY%h is not that of group g."


@pytest.mark.parametrize(
    ("code", "topic", "needs", "words"),
    [
        # A retry topic belongs to the request's group.
        (RequestCode.PULL_MESSAGE, "%RETRY%g", ["Group:g Sub"], None),
        (RequestCode.PULL_MESSAGE, "%RETRY%h", ["*"], RETRY_OF_ANOTHER),
        (RequestCode.PULL_MESSAGE, "%RETRY%g+t", ["Group:g Sub", "Topic:t Sub"], None),
        (RequestCode.PULL_MESSAGE, "%RETRY%g_t", ["*"], "not that of group g"),
        (RequestCode.ACK_MESSAGE, "%RETRY%g_t", ["Group:g Sub", "Topic:t Sub"], None),
        (RequestCode.ACK_MESSAGE, "%RETRY%g_t", ["Group:g Sub"], "Topic:t"),
        (RequestCode.ACK_MESSAGE, "%RETRY%h_t", ["*"], "not that of group g"),
        (RequestCode.QUERY_CONSUMER_OFFSET, "%RETRY%g", ["Group:g Get"], None),
        (RequestCode.UPDATE_CONSUMER_OFFSET, "%RETRY%h", ["*"], RETRY_OF_ANOTHER),
        # Without a group, it is the group.
        (RequestCode.SEND_MESSAGE, "%RETRY%g", ["Group:g Sub"], None),
        (RequestCode.SEND_MESSAGE, "%RETRY%g", ["Group:g Pub", "Topic:* All"], "Group:g"),
        (RequestCode.GET_MAX_OFFSET, "%RETRY%g", ["Group:g Get"], None),
        (RequestCode.GET_TOPIC_CONFIG, "%RETRY%g+t", ["Group:g Get"], None),
        (RequestCode.DELETE_TOPIC_IN_BROKER, "%RETRY%g", ["Topic:* All"], "Group:g"),
        (RequestCode.DELETE_TOPIC_IN_BROKER, "%RETRY%g", ["Group:g Delete"], None),
        # A dead-letter topic is a topic.
        (RequestCode.PULL_MESSAGE, "%DLQ%g", ["Group:g Sub"], "Topic:%DLQ%g"),
    ],
)
def test_retry_topics(code: RequestCode, topic: str, needs: list[str], words: str | None) -> None:
    entries = [entry(each if " " in each else f"{each} All") for each in needs]
    command = request(code, {"topic": topic, "consumerGroup": "g", "queueId": "0"})
    remark = refusal(authorization(entries), command)
    assert (remark is None) if words is None else (words in (remark or ""))


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.END_TRANSACTION,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
    ],
)
@pytest.mark.parametrize("offset", ["", "-1", "300", "x", "9" * 40])
def test_without_a_message_the_cluster_is_asked(code: RequestCode, offset: str) -> None:
    fields = dict.fromkeys(("offset", "commitLogOffset", "msgId"), offset)
    command = request(code, {**fields, "topic": "t", "group": "g", "consumerGroup": "g"})
    allowed = [entry("Topic:* All"), entry("Group:* All")]
    assert "Cluster:main" in (refusal(authorization(allowed), command) or "")
    assert refusal(authorization([*allowed, entry("Cluster:main Get")]), command) is None


def test_a_clone_of_all_topics_needs_the_cluster() -> None:
    command = request(RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "h", "destGroup": "g"})
    allowed = [entry("Topic:* All"), entry("Group:* All")]
    assert "Cluster:main" in (refusal(authorization(allowed), command) or "")
    assert refusal(authorization([*allowed, entry("Cluster:main Update")]), command) is None


def test_a_long_body_is_not_searched_for_names() -> None:
    command = request(RequestCode.HEART_BEAT, {}, b" " * (2 << 20) + b"{}")
    with pytest.raises(RemotingError, match="maximum"):
        authorization([entry("* All")]).check(NORMAL, command, PEER)


def test_addresses_of_both_versions() -> None:
    command = asked(RequestCode.GET_BROKER_CONFIG)
    for peer, allowed, other in (
        ("[fd00::1]:1", "fd00::/8", "fe00::/8"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.0/8", "11.0.0.0/8"),
        ("not connected", "", "0.0.0.0/0"),
    ):
        for text, is_allowed in ((allowed, True), (other, False)):
            networks = [text] if text else []
            check = authorization([entry("Cluster:main Get", Decision.ALLOW, *networks)])
            try:
                check.check(NORMAL, command, peer)
            except RemotingError:
                assert not is_allowed, (peer, text)
            else:
                assert is_allowed, (peer, text)
