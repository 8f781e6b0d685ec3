"""Users and ACLs are managed over the wire."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mqlake.auth.metadata import PATH
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.signature import Credentials
from tests.auth.closed import CLOSED, INNER, ROOT, SECRETS, Asking, closed
from tests.broker.running import running, to

ON = CLOSED | {"authorizationEnabled": "true"}
ALICE = Credentials("alice", "alice-password-5")
OK, REFUSED = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION


async def create(
    asking: Asking, user: Credentials, by: Credentials = ROOT, **more: str
) -> tuple[int, str | None]:
    body = json.dumps({"password": user.secret_key, **more}).encode()
    answer = await asking.ask(by, RequestCode.AUTH_CREATE_USER, {"username": user.access_key}, body)
    return answer.code, answer.remark


async def grant(
    asking: Asking,
    resource: str,
    *actions: str,
    decision: str = "Allow",
    by: Credentials = ROOT,
    subject: str = "User:alice",
    policy: str = "Custom",
    sources: tuple[str, ...] = (),
) -> tuple[int, str | None]:
    entry = {
        "resource": resource,
        "actions": actions,
        "decision": decision,
        "sourceIps": sources,
    }
    body = {"policies": [{"policyType": policy, "entries": [entry]}]}
    answer = await asking.ask(
        by, RequestCode.AUTH_CREATE_ACL, {"subject": subject}, json.dumps(body).encode()
    )
    return answer.code, answer.remark


async def send(asking: Asking, user: Credentials, topic: str = "T") -> tuple[int, str | None]:
    answer = await asking.ask(user, RequestCode.SEND_MESSAGE_V2, to(topic), b"hello")
    return answer.code, answer.remark


def test_a_user_and_its_permissions_from_beginning_to_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            assert await send(asking, ALICE) == (REFUSED, "User:alice is not found.")
            assert await create(asking, ALICE) == (OK, None)
            assert await create(asking, ALICE) == (REFUSED, "The user is existed")
            code, remark = await send(asking, ALICE)
            words = "User:alice has no permission to access Topic:T from 127.0.0.1, no matched"
            assert (code, remark) == (REFUSED, f"{words} policies.")
            assert await grant(asking, "Topic:T*", "Pub") == (OK, None)
            assert (await send(asking, ALICE))[0] == OK
            assert await grant(asking, "Topic:T", "Pub", decision="Deny") == (OK, None)
            code, remark = await send(asking, ALICE)
            assert (code, (remark or "").endswith("the decision is deny.")) == (REFUSED, True)
            fields = {"subject": "User:alice", "resource": "Topic:T"}
            answer = await asking.ask(ROOT, RequestCode.AUTH_DELETE_ACL, fields)
            assert answer.code == OK
            assert (await send(asking, ALICE))[0] == OK
            await asking.ask(ROOT, RequestCode.AUTH_DELETE_USER, {"username": "alice"})
            assert await send(asking, ALICE) == (REFUSED, "User:alice is not found.")
            assert await create(asking, ALICE) == (OK, None)
            assert (await send(asking, ALICE))[0] == REFUSED  # The ACL was deleted, too.

    asyncio.run(run())


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            await grant(asking, "Topic:T", "Pub", sources=("127.0.0.0/8", "::1"))
            await grant(asking, "*", "All", policy="Default", sources=("10.0.0.1",))
            answer = await asking.ask(ROOT, RequestCode.AUTH_GET_ACL, {"subject": "User:alice"})
            before = bytes(answer.body)
            assert json.loads(before) == {
                "subject": "User:alice",
                "policies": [
                    {
                        "policyType": "Custom",
                        "entries": [
                            {
                                "resource": "Topic:T",
                                "actions": ["Pub"],
                                "sourceIps": ["127.0.0.0/8", "::1"],
                                "decision": "Allow",
                            }
                        ],
                    },
                    {
                        "policyType": "Default",
                        "entries": [
                            {
                                "resource": "*",
                                "actions": ["All"],
                                "sourceIps": ["10.0.0.1"],
                                "decision": "Allow",
                            }
                        ],
                    },
                ],
            }
        async with closed(tmp_path, ON) as asking:
            answer = await asking.ask(ROOT, RequestCode.AUTH_GET_ACL, {"subject": "User:alice"})
            assert bytes(answer.body) == before
            assert (await send(asking, ALICE))[0] == OK

    asyncio.run(run())


def test_only_super_users_change_super_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            await grant(asking, "Cluster:*", "All")
            bob = Credentials("bob", "bob-password-6")
            assert await create(asking, bob, ALICE) == (OK, None)
            boss = Credentials("boss", "boss-password-7")
            code, remark = await create(asking, boss, ALICE, userType="Super")
            assert (code, remark) == (
                ResponseCode.SYSTEM_ERROR,
                "The super user can only be create by super user",
            )
            for code in (RequestCode.AUTH_UPDATE_USER, RequestCode.AUTH_DELETE_USER):
                body = b'{"password":"mine"}'
                answer = await asking.ask(ALICE, code, {"username": "root"}, body)
                assert (answer.code, answer.remark) == (
                    REFUSED,
                    "The super user can only be update by super user",
                )
            answer = await asking.ask(
                ALICE, RequestCode.AUTH_UPDATE_USER, {"username": "alice"}, b'{"userType":"Super"}'
            )
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert (await create(asking, boss, userType="Super"))[0] == OK

    asyncio.run(run())


def test_a_disabled_user_is_refused_and_a_new_password_counts(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            await grant(asking, "*", "All")
            name = {"username": "alice"}
            for status, code in (("disable", REFUSED), ("enable", OK)):
                body = json.dumps({"userStatus": status}).encode()
                await asking.ask(ROOT, RequestCode.AUTH_UPDATE_USER, name, body)
                assert (await send(asking, ALICE))[0] == code
            await asking.ask(ROOT, RequestCode.AUTH_UPDATE_USER, name, b'{"password":"other-8"}')
            assert await send(asking, ALICE) == (REFUSED, "check signature failed.")
            assert (await send(asking, Credentials("alice", "other-8")))[0] == OK

    asyncio.run(run())


def test_without_authorization_only_super_users_manage_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path) as asking:
            assert (await create(asking, ALICE))[0] == OK
            assert (await send(asking, ALICE))[0] == OK
            for code in range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1):
                fields = {"username": "root", "subject": "User:alice"}
                answer = await asking.ask(ALICE, code, fields, b"{}")
                assert (answer.code, bytes(answer.body)) == (REFUSED, b""), code

    asyncio.run(run())


def test_without_authentication_nobody_creates_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            for code in range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1):
                fields = {"username": "mallory", "subject": "User:mallory"}
                answer = await broker.ask(code, fields, b'{"password":"x"}')  # pyright: ignore[reportArgumentType]
                assert "authentication is off" in (answer.remark or "")
            assert not (tmp_path / PATH).exists()

    asyncio.run(run())


def test_only_the_inner_user_gets_passwords(tmp_path: Path) -> None:
    """Proxies sign with its credentials, and check the signatures of their own clients."""

    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            for user, is_shown in ((ROOT, False), (INNER, True)):
                answer = await asking.ask(user, RequestCode.AUTH_GET_USER, {"username": "alice"})
                found = json.loads(bytes(answer.body))
                expected = {"username": "alice", "userType": "Normal", "userStatus": "enable"}
                shown = {"password": ALICE.secret_key} if is_shown else {}
                assert found == expected | shown
                answer = await asking.ask(user, RequestCode.AUTH_LIST_USER, {"filter": "al"})
                assert json.loads(bytes(answer.body)) == [found]

    asyncio.run(run())


def test_lists_are_filtered_and_empty_ones_have_no_body(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            await grant(asking, "Topic:orders", "Pub")
            await grant(asking, "Group:app", "Sub")
            for fields, resources in (
                ({}, ["Topic:orders", "Group:app"]),
                ({"resourceFilter": "ord"}, ["Topic:orders"]),
                ({"subjectFilter": "alice", "resourceFilter": "app"}, ["Group:app"]),
                ({"subjectFilter": "bob"}, None),
                ({"resourceFilter": "x"}, None),
            ):
                answer = await asking.ask(ROOT, RequestCode.AUTH_LIST_ACL, fields)
                assert answer.code == OK
                found = json.loads(bytes(answer.body)) if answer.body else None
                entries = (
                    [each["resource"] for each in found[0]["policies"][0]["entries"]]
                    if found
                    else None
                )
                assert entries == resources
            for code, fields in (
                (RequestCode.AUTH_GET_USER, {"username": "bob"}),
                (RequestCode.AUTH_LIST_USER, {"filter": "bob"}),
                (RequestCode.AUTH_DELETE_USER, {"username": "bob"}),
                (RequestCode.AUTH_GET_ACL, {"subject": "User:root"}),
            ):
                answer = await asking.ask(ROOT, code, fields)
                assert (answer.code, bytes(answer.body)) == (OK, b""), code

    asyncio.run(run())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"resource": None}, "resource"),
        ({"resource": "Queue:a"}, "resource"),
        ({"resource": "Topic:a*b"}, "resource"),
        ({"actions": []}, "actions is empty"),
        ({"actions": ["Any"]}, "can not be Any"),
        ({"actions": ["Pub", "Fly"]}, "action Fly is illegal"),
        ({"sourceIps": ["10.0.0.0/33"]}, "source ip is invalid"),
        ({"sourceIps": ["localhost"]}, "source ip is invalid"),
        ({"sourceIps": ["10.0.0.1"] * 101}, "at most 100"),
        ({"decision": None}, "decision is null"),
        ({"decision": "Perhaps"}, "decision Perhaps is illegal"),
    ],
)
def test_entries_that_would_not_do_what_they_say_are_refused(
    tmp_path: Path, entry: dict[str, object], words: str
) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            good = {"resource": "Topic:a", "actions": ["Pub"], "decision": "Allow"}
            body = json.dumps({"policies": [{"entries": [good | entry]}]}).encode()
            for subject in ("User:root", "User:", "root", ""):
                answer = await asking.ask(
                    ROOT, RequestCode.AUTH_CREATE_ACL, {"subject": subject}, body
                )
                assert answer.code == REFUSED
                expected = words if subject == "User:root" else "subject"
                assert expected in (answer.remark or "")

    asyncio.run(run())


def test_there_are_limits(tmp_path: Path) -> None:
    async def run() -> None:
        limits = {"maxUserNums": "3", "maxAclEntryNums": "2"}
        async with closed(tmp_path, ON | limits) as asking:
            assert (await create(asking, ALICE))[0] == OK
            code, remark = await create(asking, Credentials("bob", "x"))
            assert (code, remark) == (REFUSED, "there are 3 users already (maxUserNums)")
            for name in ("a", "b", "a"):
                assert (await grant(asking, f"Topic:{name}", "Pub"))[0] == OK
            code, remark = await grant(asking, "Topic:c", "Pub")
            assert (code, remark) == (REFUSED, "a user can have 2 entries (maxAclEntryNums)")

    asyncio.run(run())


def test_changes_at_one_time_are_all_kept(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            users = [Credentials(f"user-{number}", "x") for number in range(20)]
            await asyncio.gather(create(asking, ALICE), *(create(asking, user) for user in users))
            await asyncio.gather(*(grant(asking, f"Topic:{n}", "Pub") for n in range(20)))
        stored = json.loads((tmp_path / PATH).read_text())
        assert len(stored["users"]) == 23
        assert len(stored["acls"][0]["policies"][0]["entries"]) == 20

    asyncio.run(run())


def test_no_answer_and_no_log_shows_a_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")

    async def run() -> None:
        async with closed(tmp_path, ON) as asking:
            await create(asking, ALICE)
            answers: list[Command] = []
            for user in (ROOT, ALICE, Credentials("alice", "wrong")):
                for route in asking.broker.broker.routes:
                    if route.code in (
                        RequestCode.AUTH_DELETE_USER,
                        RequestCode.AUTH_UPDATE_USER,
                    ):
                        continue
                    fields = {"username": "alice", "subject": "User:alice", "topic": "T"}
                    body = json.dumps({"password": ALICE.secret_key, "policies": 5}).encode()
                    is_own = RequestCode(route.code).name.startswith("AUTH_")
                    for each in (b"", body, body[:-1]) if is_own else (b"",):
                        try:
                            async with asyncio.timeout(5):
                                answers.append(await asking.ask(user, route.code, fields, each))
                        except TimeoutError:
                            continue
            shown = "".join(f"{answer} {bytes(answer.body)!r}" for answer in answers)
            assert "AUTH" in caplog.text
            for secret in (*SECRETS, ALICE.secret_key):
                assert secret not in shown
                assert secret not in caplog.text

    asyncio.run(run())
