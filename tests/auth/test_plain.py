"""ACL 1.0: accounts in files, and what RocketMQ 4.9.8 decides about requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mqlake.auth.plain import access as plain_module
from mqlake.auth.plain import needs as plain_needs
from mqlake.auth.plain.access import PlainAccess
from mqlake.auth.plain.accounts import Perm, account_of, perm_of
from mqlake.auth.plain.files import PlainFiles, Rules
from mqlake.auth.plain.verdict import check
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.auth import UserHeader
from mqlake.protocol.permission import Permission
from mqlake.protocol.signature import Credentials, signed
from tests.broker.running import PATIENCE, Running, running, to
from tests.until import until

ME, ADMIN = Credentials("account-1", "secret-12345"), Credentials("account-2", "secret-67890")
FILE = """\
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.{1,2}
accounts:
  - accessKey: account-1
    secretKey: secret-12345
    whiteRemoteAddress: 172.16.0.1
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      - groupA=DENY
      - groupB=PUB|SUB
  - accessKey: account-2
    secretKey: secret-67890
    admin: true
"""
PREFIX = "org.apache.rocketmq.acl.common.AclException: "
ELSEWHERE = "10.0.0.1"
ALLOWED = ""


def home(path: Path, text: str = FILE, name: str = "plain_acl.yml") -> Path:
    file = path / "conf" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    return PlainFiles(home(tmp_path)).read()


def refusal(rules: Rules, asked: Command, address: str = ELSEWHERE) -> str:
    try:
        check(rules, asked, address)
    except RemotingError as error:
        is_right = error.code == ResponseCode.SYSTEM_ERROR and error.remark.startswith(PREFIX)
        return error.remark.removeprefix(PREFIX) if is_right else f"not as RocketMQ: {error}"
    return ALLOWED


def of_me(code: int, body: object = None, **fields: str) -> Command:
    data = b"" if body is None else json.dumps(body).encode()
    return signed(request(code, fields, data), ME)


def test_who_needs_a_signature(rules: Rules) -> None:
    nobody = request(RequestCode.SEND_MESSAGE_V2, {"b": "topicB"})
    assert refusal(rules, nobody) == "No accessKey is configured"
    assert refusal(rules, nobody, "10.10.103.77") == ALLOWED
    assert refusal(rules, nobody, "192.168.0.2") == ALLOWED
    assert refusal(rules, nobody, "192.168.0.3") == "No accessKey is configured"
    stranger = signed(nobody, Credentials("stranger", "secret-12345"))
    assert refusal(rules, stranger) == "No acl config for stranger"
    wrong = signed(nobody, Credentials("account-1", "wrong"))
    assert refusal(rules, wrong) == "Check signature failed for accessKey=account-1"
    assert refusal(rules, wrong, "172.16.0.1") == ALLOWED


@pytest.mark.parametrize("version", [0, 399, 400, 513])
def test_the_flag_of_queries_is_never_signed(rules: Rules, version: int) -> None:
    asked = request(RequestCode.QUERY_MESSAGE, {"topic": "topicB"})
    asked.version = version
    asked = signed(asked, ME)
    asked.fields["_UNIQUE_KEY_QUERY"] = "true"
    assert refusal(rules, asked) == ALLOWED


_RETRY = "%RETRY%"
TOPIC_A = "No default permission for topic:topicA"
TOPIC_C = "No default permission for topic:topicC"
GROUP_A = "No default permission for group:groupA"


def heartbeat(group: str, *topics: str) -> dict[str, object]:
    data = {"groupName": group, "subscriptionDataSet": [{"topic": topic} for topic in topics]}
    return {"clientID": "c", "consumerDataSet": [data]}


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (of_me(10, topic="topicB"), ALLOWED),
        (of_me(10, topic="topicA"), TOPIC_A),
        (of_me(10, topic="topicC"), TOPIC_C),
        (of_me(10, topic="other"), "No default permission for topic:other"),
        (of_me(310, b="topicB", a="p"), ALLOWED),
        (of_me(310, b="topicC", a="p"), TOPIC_C),
        (of_me(310, b=_RETRY + "groupB", a="groupB"), ALLOWED),
        (of_me(310, b=_RETRY + "groupA", a="groupA"), GROUP_A),
        (of_me(310, b="RMQ_SYS_TRACE_TOPIC", a="p"), ALLOWED),
        (of_me(320, b="topicA", a="p"), ALLOWED),  # RocketMQ looks at no batch.
        (of_me(36, group="groupB"), ALLOWED),
        (of_me(36, group="groupA"), GROUP_A),
        (of_me(36, group="other"), ALLOWED),
        (of_me(11, topic="topicC", consumerGroup="groupB"), ALLOWED),
        (of_me(11, topic="topicA", consumerGroup="groupB"), TOPIC_A),
        (of_me(11, topic="topicB", consumerGroup="groupA"), GROUP_A),
        (of_me(12, topic="topicC"), ALLOWED),
        (of_me(12, topic="topicA"), TOPIC_A),
        (of_me(34, heartbeat("groupB", "topicC", _RETRY + "groupB")), ALLOWED),
        (of_me(34, heartbeat("groupB", "topicA")), TOPIC_A),
        (of_me(34, heartbeat("groupA", "topicC")), GROUP_A),
        (of_me(35, clientID="c", consumerGroup="groupA"), GROUP_A),
        (of_me(35, clientID="c", producerGroup="p"), ALLOWED),
        (of_me(38, consumerGroup="groupA"), GROUP_A),
        (of_me(15, topic="topicC", consumerGroup="groupB"), ALLOWED),
        (of_me(15, topic="topicA", consumerGroup="groupB"), TOPIC_A),
        (of_me(14, topic="topicA", consumerGroup="groupA"), ALLOWED),
        (of_me(28), ALLOWED),
        *(
            (
                of_me(code, topic="topicB"),
                f"Need admin permission for request code={code}, but accessKey=account-1 is not",
            )
            for code in (17, 25, 215, 200, 207)
        ),
    ],
)
def test_what_an_account_may_do(rules: Rules, asked: Command, outcome: str) -> None:
    assert refusal(rules, asked) == outcome
    assert refusal(rules, signed(asked, ADMIN)) == ALLOWED


def test_an_administrator_with_lists_has_only_those(tmp_path: Path) -> None:
    text = FILE + "    topicPerms:\n      - topicA=PUB\n"
    rules = PlainFiles(home(tmp_path, text)).read()
    asked = request(310, {"b": "topicA", "a": "p"})
    assert refusal(rules, signed(asked, ADMIN)) == ALLOWED
    other = request(310, {"b": "other", "a": "p"})
    assert refusal(rules, signed(other, ADMIN)) == "No default permission for topic:other"
    assert refusal(rules, signed(request(17, {"topic": "other"}), ADMIN)) == ALLOWED


@pytest.mark.parametrize(
    ("text", "perm"),
    [
        ("PUB", Perm.PUB),
        (" SUB ", Perm.SUB),
        ("PUB|SUB", Perm.PUB | Perm.SUB),
        ("SUB|PUB", Perm.PUB | Perm.SUB),
        *((text, Perm.DENY) for text in ("DENY", "pub", "", "ALL", "PUB | SUB", None, 7)),
    ],
)
def test_permissions(text: object, perm: Perm) -> None:
    assert perm_of(text) == perm


ACCOUNT = {"accessKey": "account-1", "secretKey": "secret-12345"}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"accessKey": "account-1"},
        ACCOUNT | {"accessKey": "sixsix"},
        ACCOUNT | {"secretKey": "sixsix"},
        ACCOUNT | {"topicPerms": ["topicA"]},
        ACCOUNT | {"groupPerms": ["g=PUB=SUB"]},
        ACCOUNT | {"topicPerms": "topicA=PUB"},
        ACCOUNT | {"whiteRemoteAddress": "1.2.3"},
    ],
)
def test_wrong_accounts_are_refused(tmp_path: Path, values: Mapping[str, object]) -> None:
    with pytest.raises(FormatError) as caught:
        account_of(values)
    assert "secret-12345" not in str(caught.value)
    with pytest.raises(StoreError, match="account 1") as error:
        PlainFiles(home(tmp_path, json.dumps({"accounts": [values]}))).read()
    assert "secret-12345" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        *("- secret-12345", "secret-12345", "accounts: secret-12345", "accounts: [secret-12345]"),
        *("a: [secret-12345", "accounts: !!python/object:os.system secret-12345", "a: \x00"),
        *("globalWhiteRemoteAddresses: 10.0.0.1", "a: &a [*a, secret-12345]\naccounts: *b"),
        "globalWhiteRemoteAddresses: [secret]\n",
    ],
)
def test_files_with_something_else_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(StoreError, match=r"plain_acl\.yml") as caught:
        PlainFiles(home(tmp_path, text)).read()
    assert "secret-12345" not in str(caught.value)


def test_all_files_count_and_the_first_account_of_a_name(tmp_path: Path) -> None:
    home(tmp_path)
    second = "accounts:\n  - accessKey: account-{}\n    secretKey: another-secret\n"
    home(tmp_path, second.format(1), "acl/deep/a.yaml")
    home(tmp_path, second.format(3), "acl/b.yml")
    home(tmp_path, second.format(4), "acl/c.txt")
    home(tmp_path, "accessKey: x\n", "tools.yml")
    home(tmp_path, "", "acl/empty.yml")
    rules = PlainFiles(tmp_path).read()
    assert set(rules.accounts) == {"account-1", "account-2", "account-3"}
    assert rules.accounts["account-1"].secret_key == "another-secret"
    assert "another-secret" not in repr(rules.accounts)


def test_without_files_everything_is_refused(tmp_path: Path) -> None:
    rules = PlainFiles(tmp_path).read()
    assert refusal(rules, of_me(28)) == "No acl config for account-1"


# A broker


async def ask(broker: Running, user: Credentials | None, topic: str = "topicB") -> tuple[int, str]:
    asked = request(RequestCode.SEND_MESSAGE_V2, to(topic), b"hello")
    if user is not None:
        asked = signed(asked, user)
    answer = await broker.client.request(broker.address, asked, PATIENCE)
    return answer.code, answer.remark or ""


def test_a_broker_asks_the_files_and_sees_their_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mqlake.broker.state.broker_state.LOOK_AT_ACL", 0.02)
    file = home(tmp_path / "home") / "conf" / "plain_acl.yml"

    def replace(text: str) -> None:
        new = file.with_suffix(".new")
        new.write_text(text)
        new.replace(file)

    async def run() -> None:
        settings: dict[str, object] = {"aclEnable": "true", "rocketmqHome": str(tmp_path / "home")}
        async with running(tmp_path / "store", None, clock=None, **settings) as broker:

            async def is_served(topic: str) -> bool:
                return (await ask(broker, ME, topic))[0] == ResponseCode.SUCCESS

            async def is_refused() -> bool:
                return not await is_served("topicB")

            assert await is_served("topicB")
            code, remark = await ask(broker, None)
            assert (code, remark) == (
                ResponseCode.SYSTEM_ERROR,
                f"{PREFIX}No accessKey is configured",
            )
            assert (await ask(broker, ME, "topicC"))[1] == f"{PREFIX}{TOPIC_C}"
            replace(FILE.replace("topicC=SUB", "topicC=PUB"))
            await until(lambda: is_served("topicC"))
            # A wrong file changes nothing.
            replace("accounts: [secret-12345")
            await until(lambda: "the accounts stay as they were" in caplog.text)
            assert (await ask(broker, ME, "topicC"))[0] == ResponseCode.SUCCESS
            replace(FILE.replace("account-1", "account-9"))
            await until(is_refused)
            assert (await ask(broker, ME))[1] == f"{PREFIX}No acl config for account-1"
            user = signed(request(RequestCode.AUTH_GET_USER, UserHeader(username="x")), ADMIN)
            answer = await broker.client.request(broker.address, user, PATIENCE)
            assert "authentication is off" in (answer.remark or "")

    asyncio.run(run())
    assert "secret-12345" not in caplog.text


def test_a_wrong_file_stops_the_start(tmp_path: Path) -> None:
    async def run() -> None:
        path = home(tmp_path / "home", "accounts: [{}]")
        settings: dict[str, object] = {"aclEnable": "true", "rocketmqHome": str(path)}
        with pytest.raises(StoreError, match="account 1"):
            async with running(tmp_path / "store", None, clock=None, **settings):
                pass

    asyncio.run(run())


def test_settings_that_do_not_go_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqlake.broker.settings import make_broker_settings

    monkeypatch.delenv("ROCKETMQ_HOME", raising=False)
    with pytest.raises(StoreError, match="rocketmqHome"):
        make_broker_settings({"aclEnable": "true"})
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    assert make_broker_settings({"aclEnable": "true"}).acl_home == tmp_path
    with pytest.raises(StoreError, match="authenticationEnabled"):
        make_broker_settings({"aclEnable": "true", "authenticationEnabled": "true"})
    assert plain_module.LOOK == 0.5


# Changes


async def administer(
    broker: Running, user: Credentials, code: RequestCode, **fields: str
) -> tuple[int, str]:
    asked = signed(request(code, fields), user)
    answer = await broker.client.request(broker.address, asked, PATIENCE)
    return answer.code, answer.remark or ""


UPDATE, DELETE = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, RequestCode.DELETE_ACL_CONFIG
WHITE, VERSION = (
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
)
NEW = Credentials("account-5", "secret-of-five")
OK = (ResponseCode.SUCCESS, "")


def test_administrators_change_the_files(tmp_path: Path) -> None:
    path = home(tmp_path / "home")
    file = path / "conf" / "plain_acl.yml"

    async def run() -> None:
        settings: dict[str, object] = {"aclEnable": "true", "rocketmqHome": str(path)}
        async with running(tmp_path / "store", None, clock=None, **settings) as broker:
            given = {"accessKey": NEW.access_key, "secretKey": NEW.secret_key, "admin": "false"}
            for code, fields in (
                (UPDATE, given),
                (DELETE, given),
                (WHITE, {"globalWhiteAddrs": "*"}),
            ):
                remark = (await administer(broker, ME, code, **fields))[1]
                assert remark.startswith(f"{PREFIX}Need admin permission for request code={code}")
            assert await administer(broker, ADMIN, UPDATE, **given) == OK
            assert (await ask(broker, NEW))[1] == f"{PREFIX}No default permission for topic:topicB"
            assert (
                await administer(broker, ADMIN, UPDATE, **given, topicPerms="topicB=PUB,x=SUB")
                == OK
            )
            assert (await ask(broker, NEW))[0] == ResponseCode.SUCCESS
            assert (await ask(broker, ME))[0] == ResponseCode.SUCCESS
            assert file.stat().st_mode & 0o777 == 0o600
            # What is not given stays.
            assert await administer(broker, ADMIN, UPDATE, accessKey=NEW.access_key) == OK
            assert (await ask(broker, NEW))[0] == ResponseCode.SUCCESS
            for wrong in (
                {"accessKey": "short", "secretKey": "secret-of-five"},
                {"accessKey": "account-6"},
                {**given, "topicPerms": "topicB"},
                {**given, "topicPerms": "topicB=ALL"},
                {**given, "whiteRemoteAddress": "1.2"},
            ):
                before = file.read_bytes()
                code, remark = await administer(broker, ADMIN, UPDATE, **wrong)
                assert (code, bool(remark), NEW.secret_key in remark) == (209, True, False)
                assert file.read_bytes() == before
            asked = signed(request(VERSION), ME)
            answer = await broker.client.request(broker.address, asked, PATIENCE)
            assert json.loads(answer.fields["version"])["counter"] == 3
            assert json.loads(answer.fields["allAclFileVersion"]).keys() == {str(file)}
            assert await administer(broker, ADMIN, DELETE, accessKey=NEW.access_key) == OK
            assert (await ask(broker, NEW))[1] == f"{PREFIX}No acl config for account-5"
            assert (await administer(broker, ADMIN, DELETE, accessKey="account-5"))[0] == 210

    asyncio.run(run())


def test_administrators_change_the_white_list(tmp_path: Path) -> None:
    path = home(tmp_path / "home")
    outside = tmp_path / "outside.yml"
    outside.write_text("")

    async def run() -> None:
        settings: dict[str, object] = {"aclEnable": "true", "rocketmqHome": str(path)}
        async with running(tmp_path / "store", None, clock=None, **settings) as broker:
            for fields in (
                {"globalWhiteAddrs": "*", "aclFileFullPath": str(outside)},
                {"globalWhiteAddrs": "*", "aclFileFullPath": "/etc/passwd"},
                {"globalWhiteAddrs": "1.2.3"},
            ):
                assert (await administer(broker, ADMIN, WHITE, **fields))[0] == 211
            assert outside.read_text() == ""
            assert (await ask(broker, None))[0] == ResponseCode.SYSTEM_ERROR
            fields = {"globalWhiteAddrs": "10.0.0.1,127.0.0.*", "aclFileFullPath": ""}
            assert await administer(broker, ADMIN, WHITE, **fields) == OK
            assert (await ask(broker, None, "anything"))[0] == ResponseCode.SUCCESS

    asyncio.run(run())


def test_nothing_is_changed_without_acl_1(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path / "store") as broker:
            for code in (UPDATE, DELETE, WHITE, VERSION):
                remark = (await administer(broker, ADMIN, code, accessKey="account-5"))[1]
                assert remark == "ACL 1.0 is off (aclEnable)"

    asyncio.run(run())


def test_files_that_cannot_be_read_now_are_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing tells that a passing failure is over: no file changes again."""
    file = home(tmp_path) / "conf" / "plain_acl.yml"

    async def run() -> None:
        access = PlainAccess(tmp_path)
        read = access.files.read

        def refuse() -> None:
            raise StoreError("too many open files")

        file.write_text(FILE.replace("account-1", "account-9"))
        monkeypatch.setattr(access.files, "read", refuse)
        for _ in range(3):
            await access._look()
        monkeypatch.setattr(access.files, "read", read)
        await access._look()
        with pytest.raises(RemotingError, match="No acl config for account-1"):
            access.check(of_me(28), "10.0.0.1:1")

    asyncio.run(run())
    assert caplog.text.count("too many open files") == 1


def test_whoever_creates_or_deletes_is_an_administrator(tmp_path: Path) -> None:
    async def codes() -> set[int]:
        async with running(tmp_path) as broker:
            wanted = Permission.CREATE | Permission.DELETE
            routes = broker.broker.routes
            return {each.code for each in routes if each.permission and each.permission & wanted}

    found = asyncio.run(codes())
    assert len(found) == 9
    assert found <= plain_needs.ADMIN
