"""Whether a user may make a request (upstream: `UserAuthorizationHandler`).

Upstream: `DefaultAuthorizationProvider`, `AclAuthorizationHandler`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from mqlake.auth.audit import AUDIT, log_refusal
from mqlake.auth.decisions import Decisions
from mqlake.auth.needs import Need, Question, Rule, words
from mqlake.auth.policies import Decision
from mqlake.auth.refusals import refused, shown
from mqlake.auth.rules import UNKNOWN
from mqlake.auth.sources import source_of, source_text
from mqlake.auth.users import User
from mqlake.errors import FormatError
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError


class Scope(NamedTuple):
    """By which rules requests of one server are judged.

    Attributes:
        rules: what each request needs, by its code.
        cluster: the name of the cluster as a resource.
        topic_at: see `Question`.
    """

    rules: Mapping[int, Rule]
    cluster: str
    topic_at: Callable[[int], str | None]


class Authorization:
    """Compares what requests need with the ACLs of users.

    Args:
        decisions: returns what the ACL of a user decides, by its name; None if it has no ACL.
        whitelist: codes of requests that need no permission.
    """

    def __init__(
        self,
        decisions: Callable[[str], Decisions | None],
        whitelist: Collection[int],
        scope: Scope,
    ) -> None:
        self._decisions, self._whitelist = decisions, frozenset(whitelist)
        self._scope = scope

    def check(self, user: User | None, request: Command, peer: str) -> None:
        """Refuse a request that a user may not make.

        Args:
            user: who has signed it; None if nobody has.
            peer: "ip:port" of the other side.

        Raises:
            RemotingError: NO_PERMISSION.
            FormatError: the names in the request cannot be read.
        """
        if self._is_free(user, request):
            return
        try:
            self._check(user, request, peer)
        except RemotingError as error:
            name = None if user is None else user.username
            log_refusal(
                peer,
                "[AUTHORIZATION] request %d of user %s from %s is denied: %s",
                request.code,
                name,
                peer,
                error.remark,
            )
            raise

    def permits(self, user: User, request: Command, peer: str) -> bool:
        """Return whether a user may make a request. A refusal is not logged."""
        if self._is_free(user, request):
            return True
        try:
            self._check(user, request, peer)
        except (RemotingError, FormatError):
            return False
        return True

    def _is_free(self, user: User | None, request: Command) -> bool:
        """Return whether a request needs no permission."""
        return request.code in self._whitelist or (user is not None and user.is_super)

    def _check(self, user: User | None, request: Command, peer: str) -> None:
        if user is None:
            raise refused("username cannot be null.")
        decisions = self._decisions(user.username)
        source = source_of(peer)
        scope = self._scope
        question = Question(request.fields, request.body, scope.cluster, scope.topic_at)
        rule = scope.rules.get(request.code, UNKNOWN)
        is_audited = AUDIT.isEnabledFor(logging.DEBUG)
        for part in rule:
            for need in part.find(question):
                found = None if decisions is None else decisions.decide(*need, source)
                if found is not Decision.ALLOW:
                    raise _denied(user, need, source_text(peer), found)
                if is_audited:
                    AUDIT.debug(
                        "[AUTHORIZATION] Subject = %s is Allow Action = %s from sourceIp = %s on"
                        " resource = %s for request = %d.",
                        user.subject,
                        words(need.actions),
                        source_text(peer),
                        need.text,
                        request.code,
                    )


def _denied(user: User, need: Need, where: str, found: Decision | None) -> RemotingError:
    why = "no matched policies" if found is None else "the decision is deny"
    return refused(
        f"{shown(user.subject)} has no permission to access {need.text} from {where}, {why}."
    )
