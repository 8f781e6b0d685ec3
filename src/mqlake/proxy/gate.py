"""Who makes a call: what each call must have before anything is done for it.

Upstream: `HeaderInterceptor`, `AuthenticationPipeline`.
"""

from __future__ import annotations

import hmac
from hashlib import sha1
from typing import Final

from mqlake.grpc.call import Call
from mqlake.grpc.messages import Code
from mqlake.protocol.signature import Credentials
from mqlake.proxy.brokers.port import BrokerPort, Caller
from mqlake.proxy.errors import StatusError

CLIENT_ID: Final = "x-mq-client-id"
LANGUAGE: Final = "x-mq-language"
DATE: Final = "x-mq-date-time"
AUTHORIZATION: Final = "authorization"

_LONGEST_ID: Final = 1024
_LONGEST_LANGUAGE: Final = 16
_LONGEST_NAME: Final = 255
"""Characters of the name of a user."""


class Gate:
    """Finds out who calls."""

    def __init__(self, brokers: BrokerPort) -> None:
        self._brokers = brokers

    async def caller(self, call: Call) -> Caller:
        """Return who makes a call.

        Raises:
            StatusError: the call has no client id, or a signature that is wrong.
        """
        metadata = call.metadata
        client_id = metadata.get(CLIENT_ID, "")
        if not client_id.strip():
            raise StatusError(Code.CLIENT_ID_REQUIRED, f"the metadata {CLIENT_ID} is missing")
        if len(client_id) > _LONGEST_ID or not client_id.isprintable():
            reason = f"the client id is not printable, or has more than {_LONGEST_ID} characters"
            raise StatusError(Code.CLIENT_ID_REQUIRED, reason)
        language = metadata.get(LANGUAGE, "OTHER")[:_LONGEST_LANGUAGE].upper()
        # Without a signature, the requests are not signed either: brokers know which need one.
        text = metadata.get(AUTHORIZATION) if self._brokers.is_authenticating else None
        credentials = None
        if text is None and self._brokers.refuses_unsigned:
            raise _refused("username cannot be null.")
        if text is not None:
            credentials = await self._verified(text, metadata.get(DATE), call.peer)
        return Caller(client_id, call.peer, credentials, language)

    async def _verified(self, text: str, date: str | None, address: str) -> Credentials:
        """Return the credentials of the user who has signed a call."""
        if not date:
            raise _refused("datetime is null.")
        name, claimed = _parsed(text)
        found = await self._brokers.credentials(name, address)
        if found is not None and not _is_right(found, date, claimed):
            found = await self._brokers.credentials(name, address, is_doubted=True)
        if found is None:
            raise _refused(f"User:{name[:255]} is not found.")
        if not _is_right(found, date, claimed):
            raise _refused("check signature failed.")
        return found


def _is_right(user: Credentials, date: str, claimed: str) -> bool:
    right = hmac.digest(user.secret_key.encode(), date.encode(), sha1).hex()
    return hmac.compare_digest(right.encode(), claimed.lower().encode("utf-8", "replace"))


def _parsed(text: str) -> tuple[str, str]:
    """Return the access key and the signature of an authorization.

    Its form is `MQv2-HMAC-SHA1 Credential=key/…, SignedHeaders=x-mq-date-time, Signature=hex`.
    """
    _, _, rest = text.partition(" ")
    pairs = (part.strip().partition("=") for part in rest.split(","))
    values = {name: value for name, _, value in pairs}
    name = values.get("Credential", "").partition("/")[0]
    claimed = values.get("Signature", "")
    if not name or not claimed or len(name) > _LONGEST_NAME or not name.isprintable():
        raise _refused("the authorization header is malformed.")
    return name, claimed


def _refused(reason: str) -> StatusError:
    return StatusError(Code.UNAUTHORIZED, reason)
