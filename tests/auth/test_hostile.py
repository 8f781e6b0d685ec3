"""Hostile signatures, headers, bodies, policies and files: nothing gets in, nothing unexpected is
raised.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mqlake.auth.accounts import Accounts
from mqlake.auth.authentication import Authentication
from mqlake.auth.authorization import Authorization, Scope
from mqlake.auth.metadata import PATH, AccountFile
from mqlake.auth.policies import Acl, PolicyType
from mqlake.auth.reading import read_policies, write_acl
from mqlake.auth.resource import Resource
from mqlake.auth.rules import BROKER
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserType
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.bodies.auth import AclInfo
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, Credentials, signed
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests.auth.requests import EXAMPLES, body_of
from tests.broker.running import to

ROOT = User("root", "password-1", UserType.SUPER)
ME = User("me", "password-2")
PEER = "10.0.0.1:5000"
SEEDS = range(10)

TEXTS = (
    *("", "*", "Topic:", "Topic:*", "topic:a*", "Topic:a*b", "User:", "User:me", ":", "a:b:c"),
    *("\ud800", "\0", "Group:\U0001f600*", "All", "Any", "Allow", "10.0.0.0/8", "::/0", "1/1"),
)


def accounts(state: AuthState) -> Accounts:
    return Accounts(AccountFile(LocalOwnedDirectory("/nowhere")), state)


def _no_message(_offset: int) -> None:
    return None


def mutated(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        if not found:
            break
        at = chance.randrange(len(found))
        match chance.randrange(4):
            case 0:
                found[at] ^= 1 << chance.randrange(8)
            case 1:
                found[at] = chance.randrange(256)
            case 2:
                del found[at : at + chance.randrange(1, 5)]
            case _:
                found[at:at] = found[at : at + chance.randrange(1, 9)]
    return bytes(found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("serialization", list(Serialization))
def test_a_changed_frame_is_refused_or_says_the_same(
    serialization: Serialization, seed: int
) -> None:
    chance = random.Random(seed)
    authentication = Authentication(accounts(AuthState({"root": ROOT, "me": ME})), ())
    plain = request(RequestCode.SEND_MESSAGE_V2, to("T"), b"hello")
    plain.serialization = serialization
    good = signed(plain, Credentials("root", "password-1"))
    frame = encode(good)
    for _ in range(500):
        try:
            found = decode(mutated(frame, chance))
            user = authentication.user(found, PEER)
        except (FormatError, RemotingError, IndexError):
            continue
        assert user is ROOT
        # The values are joined, so that a name may change that does not change their order.
        values = sorted(value for name, value in found.fields.items() if name != SIGNATURE)
        expected = sorted(value for name, value in good.fields.items() if name != SIGNATURE)
        assert "".join(values) == "".join(expected)
        assert bytes(found.body) == b"hello"


@pytest.mark.parametrize("seed", SEEDS)
def test_signatures_that_are_made_up_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    authentication = Authentication(accounts(AuthState({"root": ROOT})), ())
    right = signed(request(11, {"a": "1"}), Credentials("root", "password-1")).fields[SIGNATURE]
    for _ in range(300):
        text = "".join(chance.choice("abcXYZ019+/= \ud800é\0") for _ in range(chance.randrange(40)))
        for claimed in (text, right[: chance.randrange(len(right))], right + text + "x"):
            fields = {"a": "1", ACCESS_KEY: "root", SIGNATURE: claimed}
            with pytest.raises(RemotingError, match="check signature failed"):
                authentication.user(request(11, fields), PEER)


def anything(chance: random.Random, depth: int = 0) -> Any:
    """Return a JSON value of the shapes that bodies have, with wrong types now and then."""
    names = ("groupName", "topic", "consumerDataSet", "subscriptionDataSet", "acks", "c", "t", "r")
    names += ("mqSet", "topicConfigList", "topicName", "groupNameList", "policies", "entries")
    names += ("resource", "actions", "sourceIps", "decision", "policyType", "subject", "group")
    kind = chance.randrange(6 if depth < 4 else 4)
    if kind < 2:
        return chance.choice(TEXTS)
    if kind < 4:
        return chance.choice((None, True, 0, -1, 1e300, 2**70, "g", "t"))
    if kind == 4:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(names): anything(chance, depth + 1) for _ in range(chance.randrange(5))}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_body_gets_past_the_rules(seed: int) -> None:
    """A user without permissions is refused, or the body names nothing."""
    chance = random.Random(seed)
    scope = Scope(BROKER, "main", _no_message)
    authorization = Authorization(accounts(AuthState({"me": ME})).decisions, (), scope)
    empty = {
        RequestCode.HEART_BEAT,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.LITE_SUBSCRIPTION_CTL,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        RequestCode.DELETE_TOPIC_IN_BROKER_LIST,
        RequestCode.DELETE_SUBSCRIPTION_GROUP_LIST,
    }
    for code in BROKER:
        example = EXAMPLES[RequestCode(code)]
        for number in range(60):
            body = json.dumps(anything(chance)).encode() if number % 2 else body_of(example)
            if body and number % 3 == 0:
                body = mutated(body, chance)
            fields = {
                name: chance.choice((value, *TEXTS)) for name, value in example.fields.items()
            }
            try:
                authorization.check(ME, request(code, fields, body), PEER)
            except (RemotingError, FormatError):
                continue
            assert code in empty


@pytest.mark.parametrize("seed", SEEDS)
def test_policies_are_refused_or_read_again_as_written(seed: int) -> None:
    chance = random.Random(seed)
    kept = 0
    for _ in range(400):
        entry = {
            "resource": chance.choice(("Topic:a", "Group:b*", "*", *TEXTS)),
            "actions": chance.sample(("Pub", "sub", "ALL", "Get", *TEXTS), k=chance.randrange(3)),
            "sourceIps": chance.sample(
                ("10.1.2.3", "10.0.0.0/8", "fd00::1", "::ffff:1.2.3.4", *TEXTS),
                k=chance.randrange(3),
            ),
            "decision": chance.choice(("Allow", "DENY", None, "x")),
        }
        body = json.dumps({"policies": [{"policyType": "Default", "entries": [entry]}]})
        try:
            info = decode_body(AclInfo, body.encode("utf-8", "surrogatepass"))
            ((kind, entries),) = read_policies(info.policies)
        except (RemotingError, FormatError):
            continue
        kept += 1
        assert kind is PolicyType.DEFAULT
        acl = Acl().merged(kind, entries)
        ((_, again),) = read_policies(write_acl("me", acl).policies)
        assert again == entries
    assert kept


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_file_is_refused_or_read(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory = LocalOwnedDirectory(tmp_path)
    file = AccountFile(directory)
    ((kind, entries),) = read_policies(
        decode_body(
            AclInfo,
            b'{"policies":[{"entries":[{"resource":"*","actions":["All"],"decision":"Deny"}]}]}',
        ).policies
    )
    file.write(AuthState({"root": ROOT, "me": ME}, {"me": Acl().merged(kind, entries)}))
    path = tmp_path / PATH
    good, messages = path.read_bytes(), list[str]()
    for _ in range(200):
        path.write_bytes(mutated(good, chance))
        try:
            state = file.read()
        except StoreError as error:
            messages.append(str(error))
        else:
            assert state is not None
    assert not [text for text in messages if "password-" in text]
    assert messages


def test_texts_of_resources_are_stable() -> None:
    for text in TEXTS:
        found = Resource.parse(text)
        assert found is None or Resource.parse(found.text) == found
