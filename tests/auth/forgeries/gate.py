"""The checks of a broker with everything behind them replaced by a note of what came through."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqlake.auth.access import Access
from mqlake.auth.authorization import Scope
from mqlake.auth.rules import BROKER
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserStatus, UserType
from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.command import Body, Command, response
from mqlake.protocol.signature import Credentials
from mqlake.remoting.limits import Limits
from mqlake.remoting.request_router import RequestRouter
from mqlake.remoting.route import Route
from mqlake.storage.local_owned import LocalOwnedDirectory

ROOT = Credentials("root", "secret-of-root-51d0")
POOR = Credentials("poor", "secret-of-poor-77aa")
GONE = Credentials("gone", "secret-of-gone-90ce")
INNER = Credentials("inner", "secret-of-inner-3b")
EVERYBODY = (ROOT, POOR, GONE, INNER)
SECRETS = tuple(each.secret_key for each in EVERYBODY)
OFFSET, HALF = 100, 200
_TOPICS = {OFFSET: "t", HALF: "t"}


class Refusals(logging.Handler):
    """Searches all that is logged, with tracebacks, for passwords."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self.leaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1
        self.look(self.format(record), "log")

    def look(self, text: str, where: str) -> None:
        """Note a text that contains a password."""
        if any(secret in text for secret in SECRETS):
            self.leaks.append(f"{where}: {text[:300]}")


class Client:
    """Stands for the connection of a client, and keeps what it is answered."""

    address, in_flight, bodies, is_closed = "10.0.0.1:5000", 0, 0, False
    usages, started = (), None

    def __init__(self) -> None:
        self.answers: list[Command] = []

    def wait(self, count: int, size: int = 0) -> None:
        pass

    def note_answer(self, *_: object) -> None:
        pass

    def on_close(self, _: object) -> None:
        pass

    def answer(self, _: Command, answer: Command) -> None:
        self.answers.append(answer)

    def send(self, answer: Command) -> None:
        self.answers.append(answer)


class Gate:
    """A broker's checks before handlers that only note what reaches them.

    Attributes:
        served: the requests that reached a handler.
    """

    def __init__(self, directory: Path, *, is_authorizing: bool = True) -> None:
        settings = BrokerSettings(
            authentication_enabled=True,
            authorization_enabled=is_authorizing,
            broker_cluster_name="main",
            init_authentication_user=json.dumps(
                {"username": ROOT.access_key, "password": ROOT.secret_key}
            ),
        )
        scope = Scope(BROKER, "main", _TOPICS.get)
        self.access = Access(settings, LocalOwnedDirectory.make(directory), scope)
        assert self.access.accounts is not None
        self.accounts = self.access.accounts
        users = [
            User(ROOT.access_key, ROOT.secret_key, UserType.SUPER),
            User(INNER.access_key, INNER.secret_key, UserType.SUPER),
            User(POOR.access_key, POOR.secret_key),
            User(GONE.access_key, GONE.secret_key, UserType.SUPER, UserStatus.DISABLE),
        ]
        self.accounts.adopt(AuthState({user.username: user for user in users}))
        self.served: list[Command] = []
        routes = [Route(code, self._note) for code in BROKER]
        self._router = RequestRouter(routes, Limits(), self.access.checks)

    def _note(self, _peer: object, asked: Command) -> Command:
        self.served.append(asked)
        return response(asked)

    def ask(self, asked: Command) -> tuple[bool, list[Command]]:
        """Return whether a request reached a handler, and the answers."""
        client: Any = Client()
        before = len(self.served)
        self._router(client, asked)
        is_served = len(self.served) > before
        self.served.clear()
        return is_served, client.answers


def is_signed(fields: Mapping[str, str], body: Body, version: int) -> Credentials | None:
    """Return who has signed a request, by another program than the one that is checked."""
    by_name = {each.access_key: each for each in EVERYBODY}
    user = by_name.get(fields.get("AccessKey", ""))
    if user is None or user is GONE:
        return None
    names = [name for name in fields if name != "Signature"]
    if version <= 399:
        names = [name for name in names if name != "_UNIQUE_KEY_QUERY"]
    names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    content = "".join(fields[name] for name in names).encode("utf-8", "replace") + bytes(body)
    right = b64encode(hmac.new(user.secret_key.encode(), content, hashlib.sha1).digest())
    return user if fields.get("Signature", "").encode("utf-8", "replace") == right else None
