"""Whether a request is allowed by ACL 1.0 (upstream: `PlainPermissionManager.validate`)."""

from __future__ import annotations

from mqlake.auth.plain.accounts import Account, Perm
from mqlake.auth.plain.files import Rules
from mqlake.auth.plain.needs import ADMIN, needs_of
from mqlake.auth.refusals import shown
from mqlake.formats.topic_names import RETRY_PREFIX, TRACE_TOPIC
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, is_signature, signature

_WITHOUT_QUERY_FLAG = 0
"""A version of a client for which signatures never contain `_UNIQUE_KEY_QUERY`."""


def check(rules: Rules, request: Command, address: str) -> Account | None:
    """Return who has signed a request; None if its address is in a white list.

    Args:
        address: from where it comes, without its port.

    Raises:
        RemotingError: SYSTEM_ERROR, as RocketMQ answers: it is refused.
        FormatError: its body cannot be read.
    """
    if rules.is_white(address):
        return None
    key = request.fields.get(ACCESS_KEY)
    if key is None:
        raise refused("No accessKey is configured")
    account = rules.accounts.get(key)
    if account is None:
        raise refused(f"No acl config for {shown(key)}")
    if account.white_addresses(address):
        return None
    right = signature(request.fields, request.body, account.secret_key, _WITHOUT_QUERY_FLAG)
    if not is_signature(request.fields.get(SIGNATURE, ""), right):
        raise refused(f"Check signature failed for accessKey={shown(key)}")
    _check_needs(account, request)
    return account


def _check_needs(account: Account, request: Command) -> None:
    needed = needs_of(request)
    if needed.get(TRACE_TOPIC) == Perm.PUB:
        return
    if request.code in ADMIN and not account.is_admin:
        raise refused(
            f"Need admin permission for request code={request.code}, but"
            f" accessKey={shown(account.access_key)} is not"
        )
    if account.perms is None and account.is_admin:
        return
    for resource, perm in needed.items():
        if not account.allows(resource, perm):
            raise refused(f"No default permission for {_named(resource)}")


def _named(resource: str) -> str:
    if resource.startswith(RETRY_PREFIX):
        return f"group:{shown(resource[len(RETRY_PREFIX) :])}"
    return f"topic:{shown(resource)}"


def refused(reason: str) -> RemotingError:
    """Return RocketMQ's answer: scripts search for the name of its exception."""
    remark = f"org.apache.rocketmq.acl.common.AclException: {reason}"
    return RemotingError(ResponseCode.SYSTEM_ERROR, remark)
