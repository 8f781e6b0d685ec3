"""How a client reaches servers: encrypted or not, and as which user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from mqlake.client.access_options import (
    ACCESS_KEY,
    CA,
    CERT,
    KEY,
    KEY_PASSWORD,
    OF_TLS,
    OPTIONS,
    SECRET_KEY,
    TLS,
    VERIFY,
    AccessOption,
)
from mqlake.errors import MqlakeError
from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls, Verify

_BOOLEANS: Final = {"1": "true", "0": "false"}


class ClientAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How all connections of a client are opened. Its `repr` shows no secret.

    Attributes:
        tls: how connections use TLS; None for clear text.
        credentials: sign the requests; None for brokers without authentication.
    """

    tls: ClientTls | None = None
    credentials: Credentials | None = None


def access_of(given: Mapping[str, str], environment: Mapping[str, str]) -> ClientAccess:
    """Return the access that options describe.

    Args:
        given: texts by the names of `OPTIONS`; other names are ignored.
        environment: the values of options that are not given, by their variables.

    Raises:
        MqlakeError: a value is not allowed, or options contradict each other. The message contains
            no secret.
    """
    values = {
        option.name: text
        for option in OPTIONS
        if (text := given.get(option.name, "") or environment.get(option.variable, ""))
    }
    values[TLS.name] = _BOOLEANS.get(values.get(TLS.name, ""), values.get(TLS.name, ""))
    for option in (TLS, VERIFY):
        _check(option, values)
    return ClientAccess(tls=_tls(values, given), credentials=_credentials(values))


def _check(option: AccessOption, values: dict[str, str]) -> None:
    text = values.get(option.name, "").lower()
    if text and text not in option.values:
        raise MqlakeError(
            f"{option.name} (environment variable {option.variable}) is {text[:50]!r}, and must be"
            f" one of {', '.join(option.values)}"
        )


def _tls(values: Mapping[str, str], given: Mapping[str, str]) -> ClientTls | None:
    if given.get(TLS.name) and values[TLS.name].lower() == "false":
        if other := next((option.name for option in OF_TLS if given.get(option.name)), None):
            raise MqlakeError(f"{TLS.name} is false, but {other} is given: remove one of them")
        return None
    # In the environment, the password of a key may stand alone.
    is_asked = any(
        (given if option is KEY_PASSWORD else values).get(option.name) for option in OF_TLS
    )
    if values[TLS.name].lower() != "true" and not is_asked:
        return None
    return ClientTls(
        ca=values.get(CA.name, ""),
        cert=values.get(CERT.name, ""),
        key=values.get(KEY.name, ""),
        key_password=values.get(KEY_PASSWORD.name, ""),
        verify=Verify(values.get(VERIFY.name, "full").lower()),
    )


def _credentials(values: Mapping[str, str]) -> Credentials | None:
    pair = [(option, values.get(option.name, "")) for option in (ACCESS_KEY, SECRET_KEY)]
    missing = [option for option, text in pair if not text]
    if len(missing) == len(pair):
        return None
    if missing:
        (option,) = missing
        raise MqlakeError(
            f"{option.name} (environment variable {option.variable}) is missing: requests are"
            " signed with both accessKey and secretKey"
        )
    return Credentials(*(text for _, text in pair))
