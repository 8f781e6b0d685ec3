"""Signatures: who is let in, and with which words others are refused."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from mqlake.auth.metadata import PATH
from mqlake.broker.broker import Broker
from mqlake.broker.settings import make_broker_settings
from mqlake.errors import StoreError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, Credentials, signed
from tests.auth.closed import CLOSED, INNER, ROOT, SECRETS, Asking, closed
from tests.broker.running import PATIENCE, running, to

NO_PERMISSION = ResponseCode.NO_PERMISSION
CONFIG = RequestCode.GET_BROKER_CONFIG


async def remark(asking: Asking, command: Command) -> tuple[int, str | None]:
    client = asking.client(None)
    answer = await client.request(asking.broker.address, command, PATIENCE)
    return answer.code, answer.remark


def test_only_users_with_the_right_key_are_let_in(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path) as asking:
            for user in (ROOT, INNER):
                assert (await asking.ask(user, CONFIG)).code == ResponseCode.SUCCESS
            for user, words in (
                (None, "username cannot be null."),
                (Credentials("nobody", "x"), "User:nobody is not found."),
                (Credentials("root", "wrong"), "check signature failed."),
            ):
                answer = await asking.ask(user, CONFIG)
                assert (answer.code, answer.remark) == (NO_PERMISSION, words)

    asyncio.run(run())


@pytest.mark.parametrize("serialization", list(Serialization))
def test_a_change_of_a_field_or_of_the_body_breaks_the_signature(
    tmp_path: Path, serialization: Serialization
) -> None:
    async def run() -> None:
        async with closed(tmp_path) as asking:
            plain = request(RequestCode.SEND_MESSAGE_V2, to("T"), b"hello")
            plain.serialization = serialization
            good = signed(plain, ROOT)
            assert (await remark(asking, good))[0] == ResponseCode.SUCCESS
            fields = dict(good.fields)
            for name in (*fields, "another"):
                forged = signed(plain, ROOT)
                forged.known_fields = {**fields, name: fields.get(name, "") + "1"}
                assert (await remark(asking, forged))[0] == NO_PERMISSION, name
            forged = signed(plain, ROOT)
            forged.body = b"hellp"
            assert await remark(asking, forged) == (NO_PERMISSION, "check signature failed.")
            del fields[SIGNATURE]
            forged.known_fields = fields
            assert await remark(asking, forged) == (NO_PERMISSION, "check signature failed.")

    asyncio.run(run())


@pytest.mark.parametrize("serialization", list(Serialization))
def test_nothing_unsigned_passes_in_a_run(tmp_path: Path, serialization: Serialization) -> None:
    """Frames that arrive in one piece, or alone, are otherwise served without their headers."""

    async def run() -> None:
        async with closed(tmp_path) as asking:
            plain = request(RequestCode.SEND_MESSAGE_V2, to("T"), b"hello")
            plain.serialization = serialization
            reader, writer = await asyncio.open_connection(*asking.broker.address.split(":"))
            good = signed(plain, ROOT)
            for number in range(100):
                command = plain if number % 10 else good
                command.opaque = number + 1
                writer.write(encode(command))
            codes: dict[int, int] = {}
            from mqlake.protocol.frames import decode

            while len(codes) < 100:
                size = await asyncio.wait_for(reader.readexactly(4), PATIENCE)
                rest = await asyncio.wait_for(reader.readexactly(int.from_bytes(size)), PATIENCE)
                answer = decode(size + rest)
                codes[answer.opaque] = answer.code
            writer.close()
            served = {number for number, code in codes.items() if code == ResponseCode.SUCCESS}
            assert served == {number + 1 for number in range(0, 100, 10)}
            assert len(asking.broker.records("T")) == 10

    asyncio.run(run())


def test_a_typical_send_that_arrives_alone_needs_a_signature(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path) as asking:
            for _ in range(20):
                answer = await asking.ask(None, RequestCode.SEND_MESSAGE_V2, to("T"), b"x")
                assert answer.code == NO_PERMISSION
            assert asking.broker.records("T") == []

    asyncio.run(run())


def test_codes_of_the_whitelist_need_no_signature(tmp_path: Path) -> None:
    async def run() -> None:
        settings = CLOSED | {"authenticationWhitelist": " 28 ,26"}
        async with closed(tmp_path, settings) as asking:
            for code, is_open in ((26, True), (28, True), (203, False)):
                answer = await asking.ask(None, code, {"consumerGroup": "g"})
                assert (answer.code != NO_PERMISSION) is is_open, code

    asyncio.run(run())


def test_users_stay_and_their_file_is_private(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path):
            mode = stat.S_IMODE((tmp_path / PATH).stat().st_mode)
            assert mode == 0o600
        settings = CLOSED | {"initAuthenticationUser": '{"username":"root","password":"new"}'}
        async with closed(tmp_path, settings) as asking:
            assert (await asking.ask(ROOT, CONFIG)).code == ResponseCode.SUCCESS
            new = Credentials("root", "new")
            assert (await asking.ask(new, CONFIG)).code == NO_PERMISSION

    asyncio.run(run())


def test_no_answer_shows_a_password(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path) as asking:
            answer = await asking.ask(ROOT, CONFIG)
            text = bytes(answer.body).decode()
            assert "authenticationEnabled=true" in text
            assert not any(secret in text for secret in SECRETS)
            accounts = asking.broker.state.access.accounts
            assert accounts is not None
            shown = repr(asking.broker.broker.settings)
            shown += repr(accounts.state)
            shown += repr(ROOT) + repr(accounts.user("root"))
            assert "root" in shown
            assert not any(secret in shown for secret in SECRETS)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"authorizationEnabled": "true"}, "authenticationEnabled"),
        ({"authenticationEnabled": "true"}, "initAuthenticationUser"),
        ({"initAuthenticationUser": "root:secret-7"}, "JSON such as"),
        ({"initAuthenticationUser": '{"username":"root"}'}, "JSON such as"),
        ({"initAuthenticationUser": {"password": "secret-7"}}, "JSON such as"),
        ({"innerClientAuthenticationCredentials": '{"accessKey":"secret-7"}'}, "JSON such as"),
        ({"authenticationWhitelist": "3001"}, "request codes"),
        ({"authenticationWhitelist": "4711"}, "request codes"),
    ],
)
def test_settings_that_leave_a_broker_open_or_locked_are_refused(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    async def run() -> None:
        given = {"storePathRootDir": str(tmp_path), **settings}
        async with Broker(make_broker_settings(given)):
            pass

    with pytest.raises(StoreError, match=words) as caught:
        asyncio.run(run())
    assert "\n" not in str(caught.value)
    assert "secret-7" not in str(caught.value)


def test_a_damaged_file_and_rocketmqs_directories_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed(tmp_path):
            pass

    asyncio.run(run())
    file = tmp_path / PATH
    good = file.read_bytes()
    for bad in (b"", good[:-9], b"[]", good.replace(b'"Super"', b'"Supra"')):
        file.write_bytes(bad)
        with pytest.raises(StoreError, match=r"auth\.json") as caught:
            asyncio.run(run())
        assert not any(secret in str(caught.value) for secret in SECRETS)


def test_without_authentication_nothing_is_checked(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            assert not broker.state.access.checks
            assert not (tmp_path / PATH).exists()
            answer = await broker.ask(CONFIG, None)
            assert answer.code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_the_key_of_a_request_is_kept_and_its_signature_is_not(tmp_path: Path) -> None:
    """A broker forwards the fields of some requests to clients, who must not send them again."""

    async def run() -> None:
        async with closed(tmp_path) as asking:
            command = signed(request(CONFIG, {}), ROOT)
            (check,) = asking.broker.state.access.checks
            (peer,) = [*asking.broker.broker.peers][:1] or [None]
            if peer is None:
                await asking.ask(ROOT, CONFIG)
                (peer,) = [*asking.broker.broker.peers][:1]
            route = asking.broker.broker.routes[0]
            check(peer, command, route)
            assert command.fields == {ACCESS_KEY: "root"}

    asyncio.run(run())
