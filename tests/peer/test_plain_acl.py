"""ACL 1.0 beside RocketMQ 4.9.8: the same files and requests, the same verdicts."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mqlake.auth.plain.accounts import Perm
from mqlake.auth.plain.files import PlainFiles, Rules
from mqlake.auth.plain.verdict import check
from mqlake.auth.sources import source_text
from mqlake.broker.broker import Broker
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials, signed
from mqlake.spark.launch import QUICK_START
from mqlake.testing import broker
from tests.auth.test_plain import home as home_of_broker
from tests.peer.java_build import JavaMissingError, build
from tests.peer.java_start import java
from tests.peer.rocketmq_client import NEWEST_4

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
SOURCE = Path(__file__).parent / "rocketmq_plain_acl"
PREFIX = "org.apache.rocketmq.acl.common.AclException: "
FILES, REQUESTS = 60, 80
"""Sets of files, and requests for each."""

KEYS = [Credentials(f"account-{number}", f"secret-of-{number}") for number in range(3)]
STRANGER = Credentials("stranger", "secret-of-stranger")
NAMES = ("T", "U", "g", "h", "RMQ_SYS_TRACE_TOPIC", "%RETRY%g", "ä😀")
PERMS = ("PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY", "pub", "")
CODES = (10, 310, 320, 36, 11, 12, 34, 35, 38, 15, 14, 17, 25, 215, 200, 207, 28, 200050, 41, 105)
FROM = ("10.0.0.1:5", "10.0.9.1:5", "10.1.2.3:77", "192.168.7.255:1", "fe80:0:0:0:0:0:2:9:5")
ADDRESSES = (
    *("", "*", "*.*.*.*", "10.0.0.1", "10.0.0.{1,2}", "10.0.0.1,10.1.2.3", "10.0.*.*", "10.*.9.1"),
    *("10.0.0-9.*", "10.1.2.1-9", "10.1.2.4-9", "192.168.7.*", "192.168.7.0-254", "fe80::2:9"),
    *("fe80::2:*", "fe80::2:1-9", "fe80::2:{8,9}", "fe80::1-3:*", "fe80:0:0:0:0:0:2:9,10.0.0.1"),
)
WRONG = ("10.0.0", "10.0.0.9-1", "10.0.0.300", "x", "10.0.{1}.1", "fe80::*:1", "10.0.0.1-", "{1}")


def account(chance: random.Random, key: Credentials, *, may_be_wrong: bool) -> dict[str, Any]:
    perms = [f"{name}={chance.choice(PERMS[:-1])}" for name in chance.sample(NAMES, 3)]
    found: dict[str, Any] = {"accessKey": key.access_key, "secretKey": key.secret_key}
    if chance.random() < 0.3:
        found["whiteRemoteAddress"] = chance.choice(ADDRESSES)
    if chance.random() < 0.5:
        found["admin"] = chance.random() < 0.7
    for name in ("defaultTopicPerm", "defaultGroupPerm"):
        if chance.random() < 0.7:
            found[name] = chance.choice(PERMS)
    for name in ("topicPerms", "groupPerms"):
        if chance.random() < 0.6:
            found[name] = chance.sample(perms, chance.randrange(4))
    if may_be_wrong:
        wrong = {
            "accessKey": "short",
            "secretKey": None,
            "whiteRemoteAddress": chance.choice(WRONG),
            "topicPerms": ["T"],
            "groupPerms": ["g=PUB=SUB"],
        }
        name = chance.choice(list(wrong))
        found[name] = wrong[name]
    return found


def home(chance: random.Random, path: Path) -> Path:
    """Write files, of which every sixth set is wrong."""
    (path / "conf" / "acl").mkdir(parents=True)
    is_wrong = chance.random() < 1 / 6
    listed = [account(chance, key, may_be_wrong=is_wrong and not n) for n, key in enumerate(KEYS)]
    white = chance.sample(ADDRESSES[3:], chance.randrange(3)) if chance.random() < 0.4 else []
    main = {"globalWhiteRemoteAddresses": white, "accounts": listed[:2]}
    (path / "conf" / "plain_acl.yml").write_text(json.dumps(main))
    (path / "conf" / "acl" / "more.yml").write_text(json.dumps({"accounts": listed[2:]}))
    return path


def asked(chance: random.Random) -> Command:
    """Return a request, signed by an account, by a stranger, with a wrong key, or by nobody."""
    group, topic = chance.choice(NAMES), chance.choice(NAMES)
    fields = {"topic": topic, "b": topic, "a": group, "group": group, "consumerGroup": group}
    fields |= {"clientID": "c", "queueId": "0", "commitOffset": "0", "producerGroup": group}
    body = b""
    code = chance.choice(CODES)
    if code == 34:
        data = {"groupName": group, "subscriptionDataSet": [{"topic": topic}]}
        body = json.dumps({"clientID": "c", "consumerDataSet": [data]}).encode()
    found = request(code, fields, body)
    if chance.random() < 0.1:
        return found
    user = chance.choice((*KEYS, *KEYS, STRANGER))
    if chance.random() < 0.1:
        user = Credentials(user.access_key, "a-wrong-secret")
    found = signed(found, user)
    if chance.random() < 0.1:
        found.fields["_UNIQUE_KEY_QUERY"] = "true"
    return found


def mine(rules: Rules | None, command: Command, peer: str) -> str:
    assert rules is not None
    try:
        check(rules, command, source_text(peer))
    except RemotingError as error:
        return f"refused: {error.remark.removeprefix(PREFIX)}"
    except FormatError as error:
        return f"failed: {error}"
    return "allowed"


def load(path: Path) -> Rules | None:
    try:
        return PlainFiles(path).read()
    except StoreError:
        return None


def line(command: Command, peer: str) -> str:
    body = base64.b64encode(bytes(command.body)).decode()
    given = {"code": command.code, "fields": dict(command.fields), "body": body, "from": peer}
    return json.dumps(given)


@pytest.mark.parametrize(
    "seed", [49, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20))]
)
def test_every_verdict_is_rocketmqs(tmp_path: Path, seed: int) -> None:
    try:
        path = build(SOURCE, NEWEST_4)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    chance, lines, expected = random.Random(seed), list[str](), list[tuple[str, str]]()
    for number in range(FILES):
        where = home(chance, tmp_path / str(number))
        rules = load(where)
        lines.append(json.dumps({"home": str(where)}))
        expected.append((str(where), "allowed" if rules else "refused"))
        for _ in range(REQUESTS if rules else 0):
            command, peer = asked(chance), chance.choice(FROM)
            lines.append(line(command, peer))
            expected.append((lines[-1], mine(rules, command, peer)))
    done = subprocess.run(
        java(path, ["-Xmx256m", *QUICK_START, f"-Duser.home={tmp_path}"], "Verdicts"),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(each) for each in done.stdout.splitlines()]
    assert len(answers) == len(expected)
    wrong = [
        (given, own, theirs)
        for (given, own), theirs in zip(expected, answers, strict=True)
        if not is_same(own, theirs, is_file=not given.startswith("{"))
    ]
    assert wrong == []
    assert {own.partition(" for ")[0] for _, own in expected} >= {
        "allowed",
        "refused",
        "refused: No accessKey is configured",
        "refused: No acl config",
        "refused: Check signature failed",
        "refused: No default permission",
        "refused: Need admin permission",
    }


def is_same(own: str, theirs: str, *, is_file: bool) -> bool:
    if is_file:
        return (own == "allowed") == (theirs == "allowed")
    # Of several missing permissions, RocketMQ names any one.
    start = "refused: No default permission for "
    return own == theirs or (own.startswith(start) and theirs.startswith(start))


async def address(found: Broker) -> str:
    return found.settings.broker_address


def test_mqadmin_changes_the_files(tmp_path: Path) -> None:
    try:
        path = build(SOURCE, NEWEST_4)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    files = home_of_broker(tmp_path / "home")
    for name, user in (("admin", "account-2"), ("other", "account-1")):
        conf = tmp_path / name / "conf"
        conf.mkdir(parents=True)
        secret = {"account-1": "secret-12345", "account-2": "secret-67890"}[user]
        (conf / "tools.yml").write_text(f"accessKey: {user}\nsecretKey: {secret}\n")
        (conf / "logback_tools.xml").write_text("<configuration/>")
    with broker(aclEnable="true", rocketmqHome=str(files), brokerName="a") as running:
        at = ["-b", running.call(address), "-n", running.name_server]

        def run(name: str, *command: str) -> str:
            options = ["-Xmx256m", *QUICK_START, f"-Drocketmq.home.dir={tmp_path / name}"]
            options.append(f"-Duser.home={tmp_path}")
            words = java(path, options, MQADMIN, *command, *at)
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
            return done.stdout + done.stderr

        add = ["updateAclConfig", "-a", "account-7", "-s", "secret-of-seven", "-t", "T=PUB|SUB"]
        assert "Need admin permission" in run("other", *add)
        assert "account-7" not in PlainFiles(files).read().accounts
        assert "success" in run("admin", *add)
        assert PlainFiles(files).read().accounts["account-7"].allows("T", Perm.SUB)
        shown = run("other", "clusterAclConfigVersion").split()
        assert str(files / "conf" / "plain_acl.yml") in shown
        assert "success" in run("admin", "updateGlobalWhiteAddr", "-g", "10.10.10.*")
        assert PlainFiles(files).read().is_white("10.10.10.77")
        assert "success" in run("admin", "deleteAclConfig", "-a", "account-7")
        assert "account-7" not in PlainFiles(files).read().accounts
