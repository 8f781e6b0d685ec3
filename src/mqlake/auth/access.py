"""The check of every request: authentication, then authorization."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from mqlake.auth.accounts import Accounts
from mqlake.auth.authentication import Authentication
from mqlake.auth.authorization import Authorization, Scope
from mqlake.auth.metadata import AccountFile
from mqlake.auth.plain.access import PlainAccess
from mqlake.auth.settings import AuthSettings, codes, initial_user
from mqlake.auth.signers import Signers
from mqlake.auth.state import AuthState
from mqlake.auth.users import User, UserType
from mqlake.errors import StoreError
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, Credentials
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Check, Route
from mqlake.storage.protocol import OwnedDirectory

_log = logging.getLogger(__name__)


class Access:
    """Who may make which request of a server.

    Args:
        plain: decides instead, by the files of ACL 1.0; None without them.

    Attributes:
        accounts: the users and ACLs; None if authentication is off.
        is_authorizing: whether permissions are checked, not only users.
        plain: the checks by ACL 1.0; None if it is off.
        signers: the users of the open connections.
        inner: the name of the user with which servers sign their own requests.
    """

    def __init__(
        self,
        settings: AuthSettings,
        directory: OwnedDirectory,
        scope: Scope,
        plain: PlainAccess | None = None,
    ) -> None:
        inner = settings.inner_credentials
        self.inner = None if inner is None else inner.access_key
        self.signers, self.plain = Signers(), plain
        self.accounts: Accounts | None = None
        self._authorization: Authorization | None = None
        if not settings.authentication_enabled:
            return
        self.accounts = accounts = open_accounts(settings, directory)
        self._authentication = Authentication(accounts, codes(settings.authentication_whitelist))
        if settings.authorization_enabled:
            whitelist = codes(settings.authorization_whitelist)
            self._authorization = Authorization(accounts.decisions, whitelist, scope)

    @property
    def is_authorizing(self) -> bool:
        """Return whether permissions are checked."""
        return self._authorization is not None

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return the checks before every route; none if nobody is checked."""
        if self.plain is not None:
            return (self._check_plain,)
        return () if self.accounts is None else (self._check,)

    def routes(self, routes: Iterable[Route]) -> Iterable[Route]:
        """Return the routes that check every request.

        Calls that serve several frames, or one without its header, are left out: a check receives
        no more than the header of one frame, so the other signatures would not be checked. Only
        what checks each of them itself may be added again (`Route.run_checks`).
        """
        if not self.checks:
            return routes
        return [replace(route, run=None) for route in routes]

    def user(self, request: Command) -> User | None:
        """Return who has signed a request that passed the checks; None if nobody has."""
        if self.accounts is None:
            return None
        return self.accounts.user(request.fields.get(ACCESS_KEY, ""))

    def signer(self, request: Command) -> str | None:
        """Return the name of the user who has signed a request that passed the checks; None if
        nobody has, or permissions are not checked.
        """
        return request.fields.get(ACCESS_KEY) if self.is_authorizing else None

    def may(self, name: str | None, request: Command, address: str) -> bool:
        """Return whether a user could make a request. Nothing is logged.

        Args:
            name: of the user; None for somebody who needs no signature.
            address: "ip:port" of the user.
        """
        if name is None or self.accounts is None:
            return True
        user = self.accounts.user(name)
        return user is not None and user.is_enabled and self.permits(user, request, address)

    def credentials(self, name: str) -> Credentials | None:
        """Return what requests of a user are signed with; None if there is no such user."""
        if self.plain is not None:
            account = self.plain.account(name)
            return None if account is None else Credentials(name, account.secret_key)
        user = None if self.accounts is None else self.accounts.user(name)
        return Credentials(name, user.password) if user is not None and user.is_enabled else None

    def check(self, request: Command, address: str) -> None:
        """Refuse what the user who has signed a request may not do; the request is not served.

        Args:
            address: "ip:port" of who sends it.

        Raises:
            RemotingError: NO_PERMISSION.
        """
        if self.plain is not None:
            self.plain.check(request, address)
        elif self.accounts is not None:
            user = self._authentication.user(request, address)
            if self._authorization is not None:
                self._authorization.check(user, request, address)

    def accepts(self, request: Command, address: str) -> bool:
        """Return whether a user has signed a request and may make it. Nothing is logged.

        Args:
            address: "ip:port" of who sends it.
        """
        user = None if self.accounts is None else self._authentication.signer(request)
        return user is not None and self.permits(user, request, address)

    def permits(self, user: User, request: Command, address: str) -> bool:
        """Return whether a user may make a request, if it is signed. Nothing is logged."""
        authorization = self._authorization
        return authorization is None or authorization.permits(user, request, address)

    def _check(self, peer: Peer, request: Command, _route: Route) -> None:
        user = self._authentication.user(request, peer.address)
        self._note(peer, request, None if user is None else user.username)
        if self._authorization is not None:
            self._authorization.check(user, request, peer.address)

    def _check_plain(self, peer: Peer, request: Command, _route: Route) -> None:
        assert self.plain is not None
        account = self.plain.check(request, peer.address)
        self._note(peer, request, None if account is None else account.access_key)

    def _note(self, peer: Peer, request: Command, name: str | None) -> None:
        """Note who has signed a request, and remove its signature.

        A broker forwards the fields of some requests: nobody must be able to send them again.
        """
        fields = request.fields
        fields.pop(SIGNATURE, None)
        fields.pop(SECURITY_TOKEN, None)
        if name is None:
            fields.pop(ACCESS_KEY, None)
        self.signers.note(peer, name)


def open_accounts(settings: AuthSettings, directory: OwnedDirectory) -> Accounts:
    """Return the users and ACLs in a directory, with the users that the settings name.

    Raises:
        StoreError: the file cannot be read or written, or there are no users at all.
    """
    file = AccountFile(directory)
    stored = file.read()
    state = stored or AuthState()
    for user in _of_settings(settings):
        if user.username not in state.users:
            try:
                state = state.with_user(user, settings.max_user_nums)
            except RemotingError as error:
                raise StoreError(f"user {user.username} is not created: {error}") from None
            _log.info("user %s is created, as the settings say", user.username)
    if not state.users:
        raise StoreError(
            "setting authenticationEnabled: there are no users, so nobody could make a request:"
            " set initAuthenticationUser"
        )
    if state != stored:
        file.write(state)
    return Accounts(file, state)


def _of_settings(settings: AuthSettings) -> Iterable[User]:
    user = initial_user(settings.init_authentication_user)
    if user is not None:
        yield user
    inner = settings.inner_credentials
    if inner is not None:
        yield User(inner.access_key, inner.secret_key, UserType.SUPER)
