"""The kinds of forgeries. Each takes a random source and returns what was wrong, "" if nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from mqlake.auth.decisions import Decisions
from mqlake.auth.needs import Need
from mqlake.auth.policies import Acl, Action, Decision, Entry, PolicyType
from mqlake.auth.reading import read_policies
from mqlake.auth.resource import NamePattern, ResourceKind
from mqlake.auth.sources import is_within, source_of
from mqlake.errors import FormatError
from mqlake.protocol.bodies.auth import AclInfo
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode as Code
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, signed
from tests.auth.forgeries.gate import EVERYBODY, GONE, POOR, ROOT, SECRETS, Gate, is_signed
from tests.auth.forgeries.signed_pulls import signed_pulls
from tests.auth.forgeries.signed_sends import signed_sends
from tests.auth.requests import EXAMPLES, body_of
from tests.mutated_bytes import mutated

CODES = sorted(EXAMPLES)
NOTHING_NAMED = {
    *(Code.HEART_BEAT, Code.CHECK_CLIENT_CONFIG, Code.UNREGISTER_CLIENT, Code.BATCH_ACK_MESSAGE),
    *(Code.UPDATE_AND_CREATE_TOPIC_LIST, Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST),
    *(Code.DELETE_TOPIC_IN_BROKER_LIST, Code.DELETE_SUBSCRIPTION_GROUP_LIST),
    Code.LITE_SUBSCRIPTION_CTL,
}
"""Requests that need no permission if they name nothing."""
NAMES = ("t", "u", "orders", "order", "orders-eu", "g", "", "*", "%RETRY%g", "a:b", "\U0001f600")
LETTERS = "abcXYZ019+/= \ud800é\0"

_LAST_BINARY = 1 << 15
"""The first code that does not fit into a binary header."""

Forgery = Callable[[Gate, random.Random], str]

_ODD = (0, 1, 0x22, 0x2C, 0x7F, 0xFF)


def example(chance: random.Random) -> Command:
    """Return an unsigned request of any code, as clients make it."""
    code = chance.choice(CODES)
    found = EXAMPLES[code]
    asked = request(code, dict(found.fields), body_of(found))
    if code < _LAST_BINARY:
        asked.serialization = chance.choice(list(Serialization))
    asked.version = chance.choice((0, 399, 400, 513))
    return asked


def leaks(answers: list[Command]) -> bool:
    """Return whether a password is in the answers."""
    text = "".join(f"{each.remark}{dict(each.fields)}{bytes(each.body)!r}" for each in answers)
    return any(secret in text for secret in SECRETS)


def judged(gate: Gate, asked: Command, what: str) -> str:
    """Return what is wrong with how a request is judged."""
    try:
        fields, body = dict(asked.fields), bytes(asked.body)
    except FormatError:
        fields, body = {}, b""
    user = is_signed(fields, body, asked.version)
    is_served, answers = gate.ask(asked)
    if leaks(answers):
        return f"{what}: a password is in the answer to request {asked.code}"
    if not is_served:
        return ""
    if user is None:
        return f"{what}: request {asked.code} of nobody was served"
    if user is POOR and asked.code not in NOTHING_NAMED:
        return f"{what}: request {asked.code} was served without a permission"
    return "" if len(answers) <= 1 else f"{what}: {len(answers)} answers"


def frames(gate: Gate, chance: random.Random) -> str:
    """Change the bytes of a signed frame, or of one that is signed with a wrong key."""
    frame = encode(signed(example(chance), chance.choice(EVERYBODY)))
    try:
        found = decode(mutated(frame, chance, _ODD))
    except (FormatError, IndexError):
        return ""
    return judged(gate, found, "frame")


def signatures(gate: Gate, chance: random.Random) -> str:
    """Make up a signature, or use one of another request, another user, another time."""
    user, asked = chance.choice(EVERYBODY), example(chance)
    fields = dict(signed(asked, user).fields)
    right = fields[SIGNATURE]
    match chance.randrange(6):
        case 0:
            fields[SIGNATURE] = "".join(chance.choices(LETTERS, k=chance.randrange(40)))
        case 1:
            fields[SIGNATURE] = right[: chance.randrange(len(right))]
        case 2:
            fields[SIGNATURE] = right + chance.choice(("", "=", " ", "\n", "\0", right))
        case 3:
            fields[SIGNATURE] = signed(example(chance), user).fields[SIGNATURE]
        case 4:
            fields[ACCESS_KEY] = chance.choice((*(each.access_key for each in EVERYBODY), "x", ""))
        case _:
            fields[SIGNATURE] = chance.choice((right.lower(), right.swapcase(), right[::-1]))
    forged = request(asked.code, fields, asked.body)
    forged.version = asked.version
    return judged(gate, forged, "signature")


def headers(gate: Gate, chance: random.Random) -> str:
    """Rename, add, remove and exchange header fields after they were signed."""
    asked = signed(example(chance), chance.choice(EVERYBODY))
    fields = dict(asked.fields)
    for _ in range(chance.randrange(1, 4)):
        name = chance.choice(sorted(fields)) if fields else "x"
        other = chance.choice((*sorted(fields), "topic", "b", "consumerGroup", "_UNIQUE_KEY_QUERY"))
        match chance.randrange(5):
            case 0:
                fields[other] = fields.pop(name, "")
            case 1:
                fields.pop(name, None)
            case 2:
                fields[other] = chance.choice(NAMES)
            case 3:
                fields[name], fields[other] = fields.get(other, ""), fields.get(name, "")
            case _:
                text = fields.get(name, "")
                fields[name] = text[1:]
                fields[other] = fields.get(other, "") + text[:1]
    forged = request(asked.code, fields, asked.body)
    forged.version = chance.choice((asked.version, 399, 400))
    return judged(gate, forged, "header")


def bodies(gate: Gate, chance: random.Random) -> str:
    """Let a user without permissions sign any header and any body."""
    asked = example(chance)
    fields = {name: chance.choice((text, *NAMES)) for name, text in asked.fields.items()}
    body = bytes(asked.body)
    if body and chance.random() < 0.7:
        body = mutated(body, chance, _ODD)
    elif chance.random() < 0.5:
        body = json.dumps(_anything(chance)).encode()
    forged = request(asked.code, fields, body)
    forged.version = asked.version
    return judged(gate, signed(forged, chance.choice((POOR, GONE))), "body")


def policies(_gate: Gate, chance: random.Random) -> str:
    """Compare decisions with those of RocketMQ's algorithm, which sorts all matching entries."""
    listed: dict[PolicyType, list[Entry]] = {kind: [] for kind in PolicyType}
    acl = Acl()
    for _ in range(chance.randrange(1, 6)):
        body = json.dumps({"policies": [_policy(chance)]}).encode("utf-8", "surrogatepass")
        if chance.random() < 0.1:
            body = mutated(body, chance, _ODD)
        try:
            found = read_policies(decode_body(AclInfo, body).policies)
        except (RemotingError, FormatError):
            continue
        for kind, entries in found:
            acl = acl.merged(kind, entries)
            for each in entries:
                others = [old for old in listed[kind] if old.resource != each.resource]
                listed[kind] = [*others, each]
    decisions = Decisions(acl)
    for _ in range(3):
        kind = chance.choice((ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER))
        actions = frozenset(chance.sample([Action.PUB, Action.SUB, Action.GET, Action.UPDATE], 2))
        need = Need(kind, chance.choice(NAMES), actions)
        source = source_of(chance.choice(("10.1.2.3:1", "[fd00::1]:1", "192.168.0.1:1", "x")))
        right = expected(listed, need, source)
        if decisions.decide(*need, source) is not right:
            return f"policy: {need} from {source} by {listed} is not {right}"
    return ""


def expected(listed: dict[PolicyType, list[Entry]], need: Need, source: Any) -> Decision | None:
    """Return what RocketMQ decides."""
    for kind in (PolicyType.CUSTOM, PolicyType.DEFAULT):
        matching = [entry for entry in listed[kind] if _matches(entry, need, source)]
        if matching:
            return min(matching, key=_rank).decision
    return None


def _matches(entry: Entry, need: Need, source: Any) -> bool:
    resource = entry.resource
    if resource.kind not in (ResourceKind.ANY, need.kind):
        return False
    if resource.pattern is NamePattern.LITERAL and resource.name != need.name:
        return False
    if resource.pattern is NamePattern.PREFIXED and not need.name.startswith(resource.name):
        return False
    if not (Action.ALL in entry.actions or entry.actions & need.actions):
        return False
    return not entry.networks or is_within(source, entry.networks)


def _rank(entry: Entry) -> tuple[bool, int, int, bool]:
    order = (NamePattern.LITERAL, NamePattern.PREFIXED, NamePattern.ANY)
    resource = entry.resource
    return (
        resource.kind is ResourceKind.ANY,
        order.index(resource.pattern),
        -len(resource.name),
        entry.decision is not Decision.DENY,
    )


def _policy(chance: random.Random) -> dict[str, Any]:
    kinds = ("Topic:", "Group:", "Cluster:", "topic:", "", "Namespace:")
    names = (*NAMES, "order*", "o*", "t*", "g*", "a*b")
    sources = ("10.1.0.0/16", "fd00::/8", "192.168.0.1", "1/1")
    entry = {
        "resource": chance.choice(kinds) + chance.choice(names),
        "actions": chance.sample(("Pub", "sub", "ALL", "Get", "Update", "Any", "x"), k=2),
        "sourceIps": chance.sample(sources, k=chance.randrange(3)),
        "decision": chance.choice(("Allow", "DENY")),
    }
    return {"policyType": chance.choice(("Custom", "Default", "")), "entries": [entry]}


def _anything(chance: random.Random, depth: int = 0) -> Any:
    """Return a JSON value of the shapes that bodies have, with wrong types now and then."""
    names = ("groupName", "topic", "consumerDataSet", "subscriptionDataSet", "acks", "c", "t", "r")
    names += ("mqSet", "topicConfigList", "topicName", "groupNameList", "group", "consumerGroup")
    kind = chance.randrange(6 if depth < 4 else 4)
    if kind < 2:
        return chance.choice(NAMES)
    if kind < 4:
        return chance.choice((None, True, 0, -1, 1e300, 2**70, "g", "t"))
    if kind == 4:
        return [_anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(names): _anything(chance, depth + 1) for _ in range(chance.randrange(5))}


KINDS: dict[str, Forgery] = {
    "frames": frames,
    "signatures": signatures,
    "headers": headers,
    "bodies": bodies,
    "policies": policies,
    "signed sends": signed_sends,
    "signed pulls": signed_pulls,
}
"""Each kind of forgery has the same share."""


def right(gate: Gate, chance: random.Random) -> str:
    """Return what is wrong with how an honest request is judged."""
    asked = signed(example(chance), ROOT)
    is_served, answers = gate.ask(decode(encode(asked)))
    if is_served:
        return ""
    return f"an honest request {asked.code} was refused: {[each.remark for each in answers]}"
