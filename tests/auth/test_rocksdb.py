"""RocketMQ's directories with users and ACLs: read, changed, and damaged."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from rocksdict import AccessType, Options, Rdict

from mqlake.auth.metadata import PATH, AccountFile
from mqlake.auth.policies import Acl, Action, Decision, Entry, PolicyType
from mqlake.auth.resource import Resource
from mqlake.auth.rocksdb.directories import read_accounts, write_accounts
from mqlake.auth.rocksdb.values import stored_acl, stored_user
from mqlake.auth.sources import network
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserStatus, UserType
from mqlake.errors import DiskError, StoreError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests.auth.closed import CLOSED, ROOT, closed

USER = (
    '{"password":"p\\"\xe4","subjectType":1,"userStatus":1,"userType":2,"username":"\xe4 b"}'
).encode()
"""A record that RocketMQ 5.5.0 has written, as the next ones."""
ACL = (
    '{"policies":[{"entries":[{"actions":[3,4],"decision":1,"environment":{"sourceIps":'
    '["10.0.0.0/8","::1"]},"resource":{"resourceName":"t","resourcePattern":2,"resourceType":4}},'
    '{"actions":[1],"decision":2,"environment":{},"resource":{"resourceName":"g",'
    '"resourcePattern":3,"resourceType":5}},{"actions":[8,9],"decision":1,"environment":{},'
    '"resource":{"resourcePattern":1,"resourceType":1}},{"actions":[6,5,7],"decision":1,'
    '"environment":{},"resource":{"resourcePattern":1,"resourceType":2}}],"policyType":1},'
    '{"entries":[{"actions":[3,4],"decision":1,"environment":{"sourceIps":["10.0.0.0/8","::1"]},'
    '"resource":{"resourceName":"t","resourcePattern":2,"resourceType":4}}],"policyType":2}],'
    '"subject":{"subjectType":1,"username":"\xe4 b"}}'
).encode()
SECRET = "secret-password"


def entry(resource: str, *actions: Action, sources: str = "", is_deny: bool = False) -> Entry:
    found = Resource.parse(resource)
    assert found is not None
    networks = tuple(map(network, sources.split()))
    return Entry(found, frozenset(actions), networks, Decision.DENY if is_deny else Decision.ALLOW)


STATE = AuthState(
    {
        "root": User("root", SECRET, UserType.SUPER),
        "off": User("off", SECRET, user_status=UserStatus.DISABLE),
        "ä b": User("ä b", 'p"ä'),
    },
    {
        "ä b": Acl()
        .merged(
            PolicyType.CUSTOM,
            [
                entry("Topic:t", Action.PUB, Action.SUB, sources="10.0.0.0/8 ::1"),
                entry("Group:g*", Action.ALL, is_deny=True),
                entry("*", Action.GET, Action.LIST),
                entry("Cluster:*", Action.UPDATE, Action.CREATE, Action.DELETE),
            ],
        )
        .merged(
            PolicyType.DEFAULT,
            [entry("Topic:t", Action.PUB, Action.SUB, sources="10.0.0.0/8 ::1")],
        )
    },
)


def put(path: Path, records: Mapping[bytes, bytes]) -> None:
    options = Options(raw_mode=True)
    options.set_allow_concurrent_memtable_write(False)
    database = Rdict(str(path), options)
    for key, value in records.items():
        database[key] = value
    database.close()


def records(path: Path) -> dict[bytes, bytes]:
    database = Rdict(str(path), Options(raw_mode=True), access_type=AccessType.read_only())
    try:
        return {bytes(key): bytes(value) for key, value in database.items()}  # type: ignore[arg-type]
    finally:
        database.close()


def test_records_are_those_of_rocketmq(tmp_path: Path) -> None:
    key, value = stored_user(STATE.users["ä b"])
    assert (key, value) == ("ä b".encode(), USER)
    key, value = stored_acl("ä b", STATE.acls["ä b"])
    assert key == "User:ä b".encode()
    ours, theirs = json.loads(value), json.loads(ACL)
    for policy in (*ours["policies"], *theirs["policies"]):
        for each in policy["entries"]:
            each["actions"].sort()
            each["environment"]["sourceIps"] = [
                text.removesuffix("/128") for text in each["environment"].get("sourceIps", [])
            ]
    assert ours == theirs
    put(tmp_path / "users", {"ä b".encode(): USER})
    put(tmp_path / "acls", {"User:ä b".encode(): ACL})
    found = read_accounts(tmp_path / "users", tmp_path / "acls")
    assert found.users == {"ä b": STATE.users["ä b"]}
    assert found.acls == STATE.acls


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    users, acls = tmp_path / "users", tmp_path / "acls"
    assert read_accounts(users, acls) == AuthState()
    write_accounts(users, acls, STATE)
    assert read_accounts(users, acls) == STATE
    before = records(users)
    less = STATE.without_user("ä b").with_user(User("new", "x"), 10)
    write_accounts(users, acls, less)
    assert read_accounts(users, acls) == less
    assert records(acls) == {}
    assert records(users)[b"root"] == before[b"root"]
    assert users.stat().st_mode & 0o777 == acls.stat().st_mode & 0o777 == 0o700


def test_a_broker_works_with_them(tmp_path: Path) -> None:
    """The content of its file moves into the directories as soon as they exist."""

    async def run(*, creates: bool) -> None:
        async with closed(tmp_path, {**CLOSED, "authorizationEnabled": "true"}) as asking:
            if creates:
                body = json.dumps({"username": "new", "password": SECRET}).encode()
                fields = {"username": "new"}
                made = await asking.ask(ROOT, RequestCode.AUTH_CREATE_USER, fields, body)
                assert made.code == ResponseCode.SUCCESS
            found = await asking.ask(ROOT, RequestCode.AUTH_GET_USER, {"username": "new"})
            assert json.loads(bytes(found.body))["username"] == "new"

    asyncio.run(run(creates=True))
    file, config = tmp_path / PATH, tmp_path / "config"
    saved = file.read_bytes()
    (config / "users").mkdir()
    asyncio.run(run(creates=False))
    assert not file.exists()
    assert set(records(config / "users")) == {b"root", b"inner", b"new"}
    asyncio.run(run(creates=False))
    # Interrupted between writing and renaming.
    file.write_bytes(saved)
    asyncio.run(run(creates=False))
    assert not file.exists()
    file.write_bytes(saved.replace(b'"new"', b'"old"'))
    with pytest.raises(StoreError, match="out of date"):
        asyncio.run(run(creates=False))


def test_records_of_a_killed_process_are_found(tmp_path: Path) -> None:
    """They are in the write-ahead log only."""
    users, acls = tmp_path / "users", tmp_path / "acls"
    put(users, {})
    process = os.fork()
    if not process:
        options = Options(raw_mode=True)
        options.set_allow_concurrent_memtable_write(False)
        database = Rdict(str(users), options)
        for key, value in map(stored_user, STATE.users.values()):
            database[key] = value
        database.flush_wal(sync=True)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    assert read_accounts(users, acls).users == STATE.users


def test_another_process_is_not_disturbed(tmp_path: Path) -> None:
    users, acls = tmp_path / "users", tmp_path / "acls"
    write_accounts(users, acls, STATE)
    options = Options(raw_mode=True)
    options.set_allow_concurrent_memtable_write(False)
    other = Rdict(str(users), options)
    try:
        with pytest.raises(DiskError, match="users"):
            write_accounts(users, acls, AuthState())
    finally:
        other.close()
    assert read_accounts(users, acls) == STATE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"a", b""),
        (b"a", b"{"),
        (b"a", b"[]"),
        (b"a", b'{"password":"secret-password","userType":9,"username":"a"}'),
        (b"a", b'{"password":"secret-password","userStatus":-1,"username":"a"}'),
        (b"a", b'{"password":"secret-password","userType":"Super","username":"a"}'),
        (b"a", b'{"password":"secret-password","username":"b"}'),
        (b"a", b'{"password":" ","username":"a"}'),
        (b"\xff", b'{"password":"secret-password","username":"a"}'),
    ],
)
def test_damaged_users_are_refused(tmp_path: Path, key: bytes, value: bytes) -> None:
    put(tmp_path / "users", {key: value})
    with pytest.raises(StoreError, match="users") as caught:
        read_accounts(tmp_path / "users", tmp_path / "acls")
    assert SECRET not in str(caught.value)


def test_mutated_acls_are_refused_or_read(tmp_path: Path) -> None:
    rng, read, refused = random.Random(5), 0, 0
    for number in range(150):
        data = bytearray(ACL)
        for _ in range(rng.randrange(1, 3)):
            data[rng.randrange(len(data))] = rng.choice(b'0123456789"{}[],:*tn')
        path = tmp_path / str(number)
        put(path, {"User:ä b".encode(): bytes(data)})
        try:
            found = read_accounts(tmp_path / "none", path)
        except StoreError:
            refused += 1
        else:
            read += 1
            assert set(found.acls) <= {"ä b"}
        shutil.rmtree(path)
    assert read
    assert refused


def test_a_damaged_directory_is_refused(tmp_path: Path) -> None:
    write_accounts(tmp_path / "config" / "users", tmp_path / "config" / "acls", STATE)
    (tmp_path / "config" / "users" / "CURRENT").write_bytes(b"nonsense")
    with pytest.raises(StoreError, match="RocksDB cannot read it"):
        AccountFile(LocalOwnedDirectory(tmp_path)).read()


@pytest.mark.parametrize("name", ["users", "acls"])
def test_an_incomplete_copy_is_refused_and_kept(tmp_path: Path, name: str) -> None:
    paths = tmp_path / "users", tmp_path / "acls"
    write_accounts(*paths, STATE)
    write_accounts(*paths, AuthState({}, {}))
    write_accounts(*paths, STATE)
    path = tmp_path / name
    for file in path.iterdir():
        if file.suffix != ".sst":
            file.unlink()
    kept = sorted(path.iterdir())
    assert kept
    with pytest.raises(StoreError, match="no file CURRENT: it is an incomplete copy"):
        read_accounts(*paths)
    with pytest.raises(StoreError, match="no file CURRENT: it is an incomplete copy"):
        write_accounts(*paths, STATE)
    assert sorted(path.iterdir()) == kept


@pytest.mark.parametrize(
    "written", [AuthState({}, {}), AuthState({"root": STATE.users["root"]}, {})]
)
def test_an_interrupted_move_of_the_file_continues(tmp_path: Path, written: AuthState) -> None:
    file = AccountFile(LocalOwnedDirectory(tmp_path))
    file.write(STATE)
    paths = tmp_path / "config" / "users", tmp_path / "config" / "acls"
    write_accounts(*paths, written)
    assert file.read() == STATE
    assert read_accounts(*paths) == STATE
    assert not (tmp_path / PATH).exists()
