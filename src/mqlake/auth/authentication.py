"""Find out who sends a request, by its signature (upstream: `DefaultAuthenticationHandler`)."""

from __future__ import annotations

from collections.abc import Collection

from mqlake.auth.accounts import Accounts
from mqlake.auth.audit import AUDIT, log_refusal
from mqlake.auth.refusals import refused, shown
from mqlake.auth.users import User
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, is_signature, signature


class Authentication:
    """Checks the signatures of requests.

    Args:
        whitelist: codes of requests that need no signature.
    """

    def __init__(self, accounts: Accounts, whitelist: Collection[int]) -> None:
        self._accounts, self._whitelist = accounts, frozenset(whitelist)

    def user(self, request: Command, peer: str) -> User | None:
        """Return who sends a request; None if the request needs no signature and has no valid one.

        Args:
            peer: "ip:port" of the other side.

        Raises:
            RemotingError: NO_PERMISSION, if nobody is known to have sent it.
        """
        try:
            user = self._verified(request)
        except RemotingError as error:
            if request.code in self._whitelist:
                return None
            log_refusal(
                peer,
                "[AUTHENTICATION] request %d of %s from %s is refused: %s",
                request.code,
                shown(request.fields.get(ACCESS_KEY, "nobody")),
                peer,
                error.remark,
            )
            raise
        AUDIT.debug("[AUTHENTICATION] User:%s is authenticated", user.username)
        return user

    def signer(self, request: Command) -> User | None:
        """Return who has signed a request; None if nobody has. Nothing is logged."""
        try:
            return self._verified(request)
        except RemotingError:
            return None

    def _verified(self, request: Command) -> User:
        fields = request.fields
        name = fields.get(ACCESS_KEY)
        if not name:
            raise refused("username cannot be null.")
        user = self._accounts.user(name)
        if user is None:
            raise refused(f"User:{shown(name)} is not found.")
        if not user.is_enabled:
            raise refused(f"User:{shown(name)} is disabled.")
        right = signature(fields, request.body, user.password, request.version)
        if not is_signature(fields.get(SIGNATURE, ""), right):
            raise refused("check signature failed.")
        return user
