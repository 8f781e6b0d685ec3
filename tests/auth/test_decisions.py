"""What policies decide, beside RocketMQ's own order written out."""

from __future__ import annotations

import random
from ipaddress import ip_address

import pytest

from mqlake.auth.decisions import Decisions
from mqlake.auth.policies import Acl, Action, Decision, Entry, Policy, PolicyType
from mqlake.auth.resource import NamePattern, Resource, ResourceKind
from mqlake.auth.sources import Address, network

NAMES = ("", "a", "ab", "abc", "b", "ba", "%RETRY%a")
KINDS = (ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER)
SOURCES = (ip_address("10.0.0.1"), ip_address("10.0.1.1"), ip_address("fd00::1"), None)
NETWORKS = ("10.0.0.0/24", "10.0.0.1", "fd00::/8", "0.0.0.0/0")


def covers(resource: Resource, kind: ResourceKind, name: str) -> bool:
    if resource.kind is ResourceKind.ANY:
        return True
    if resource.kind is not kind:
        return False
    if resource.pattern is NamePattern.LITERAL:
        return resource.name == name
    return resource.pattern is NamePattern.ANY or name.startswith(resource.name)


def by_sorting(
    policy: Policy,
    kind: ResourceKind,
    name: str,
    actions: frozenset[Action],
    source: Address | None,
) -> Decision | None:
    """Upstream: filter all entries, sort those that match, and take the first."""
    found = [
        entry
        for entry in policy.values()
        if covers(entry.resource, kind, name)
        and (Action.ANY in actions or Action.ALL in entry.actions or actions & entry.actions)
        and (
            not entry.networks
            or (source is not None and any(source in each for each in entry.networks))
        )
    ]
    order = [NamePattern.LITERAL, NamePattern.PREFIXED, NamePattern.ANY]
    found.sort(
        key=lambda entry: (
            entry.resource.kind is ResourceKind.ANY,
            order.index(entry.resource.pattern),
            -len(entry.resource.name),
        )
    )
    return found[0].decision if found else None


def any_policy(chance: random.Random) -> dict[Resource, Entry]:
    found: dict[Resource, Entry] = {}
    for _ in range(chance.randrange(8)):
        pattern = chance.choice(list(NamePattern))
        name = "" if pattern is NamePattern.ANY else chance.choice(NAMES)
        resource = Resource(chance.choice(KINDS), name, pattern)
        if chance.random() < 0.1:
            resource = Resource(ResourceKind.ANY, "", NamePattern.ANY)
        actions = chance.sample([each for each in Action if each is not Action.ANY], k=2)
        networks = [network(each) for each in NETWORKS if chance.random() < 0.15]
        decision = chance.choice(list(Decision))
        found[resource] = Entry(resource, frozenset(actions), tuple(networks), decision)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_those_of_a_sorted_list(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        acl = Acl(any_policy(chance), any_policy(chance))
        decisions = Decisions(acl)
        for _ in range(10):
            kind, name = chance.choice(KINDS), chance.choice(NAMES)
            actions = frozenset(chance.sample(list(Action), k=chance.randrange(1, 3)))
            source = chance.choice(SOURCES)
            expected = by_sorting(acl.custom, kind, name, actions, source)
            if expected is None:
                expected = by_sorting(acl.default, kind, name, actions, source)
            assert decisions.decide(kind, name, actions, source) is expected


def test_a_resource_has_one_entry_in_each_policy() -> None:
    resource = Resource(ResourceKind.TOPIC, "a", NamePattern.LITERAL)
    allow, deny = (Entry(resource, frozenset({Action.PUB}), (), decision) for decision in Decision)
    acl = Acl().merged(PolicyType.CUSTOM, [allow]).merged(PolicyType.CUSTOM, [deny])
    assert acl.entries == 1
    assert acl.custom[resource] is deny
    both = acl.merged(PolicyType.DEFAULT, [allow])
    assert (both.entries, both.without(PolicyType.CUSTOM, resource).entries) == (2, 1)


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("*", Resource(ResourceKind.ANY, "", NamePattern.ANY)),
        ("Topic:*", Resource(ResourceKind.TOPIC, "", NamePattern.ANY)),
        ("topic:a", Resource(ResourceKind.TOPIC, "a", NamePattern.LITERAL)),
        ("Group:a:b*", Resource(ResourceKind.GROUP, "a:b", NamePattern.PREFIXED)),
        ("Topic:a*b", None),
        ("Topic:a**", None),
        ("Topic:", None),
        ("Topic", None),
        ("Queue:a", None),
        ("", None),
    ],
)
def test_resources_as_texts(text: str, resource: Resource | None) -> None:
    assert Resource.parse(text) == resource
    if resource is not None:
        assert Resource.parse(resource.text) == resource


def test_names_that_clients_choose_are_not_remembered_without_end() -> None:
    resource = Resource(ResourceKind.TOPIC, "a", NamePattern.PREFIXED)
    entry = Entry(resource, frozenset((Action.PUB,)), (), Decision.ALLOW)
    decisions = Decisions(Acl().merged(PolicyType.CUSTOM, [entry]))
    for number in range(5000):
        for name in (f"a{number}", f"b{number}"):
            wanted = Decision.ALLOW if name[0] == "a" else None
            for _ in range(2):
                assert (
                    decisions.decide(ResourceKind.TOPIC, name, frozenset((Action.PUB,)), None)
                    is wanted
                )
        assert decisions.decide(ResourceKind.TOPIC, "a1", frozenset((Action.SUB,)), None) is None
    assert len(decisions._known) <= 1000


def test_long_names_are_not_remembered() -> None:
    decisions = Decisions(Acl())
    for length in (1, 255, 256, 1 << 20):
        name = "x" * length
        assert decisions.decide(ResourceKind.TOPIC, name, frozenset([Action.PUB]), None) is None
    assert sorted(len(name) for _, name, _ in decisions._known) == [1, 255]
