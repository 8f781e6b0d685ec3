"""The options of connections: which access they describe, and that no secret is shown."""

from __future__ import annotations

from itertools import product

import pytest

from mqlake.client import ClientTls, Credentials, Verify
from mqlake.client.access import ClientAccess, access_of
from mqlake.client.access_options import OF_TLS, OPTIONS
from mqlake.errors import MqlakeError

SECRET = "hunter2-secret"


@pytest.mark.parametrize(
    ("given", "environment", "found"),
    [
        ({}, {}, ClientAccess()),
        ({"tls": "true"}, {}, ClientAccess(tls=ClientTls())),
        ({"tls": "FALSE"}, {"MQLAKE_TLS_CA": "/ca"}, ClientAccess()),
        ({}, {"MQLAKE_TLS": "1"}, ClientAccess(tls=ClientTls())),
        ({}, {"MQLAKE_TLS": "0"}, ClientAccess()),
        ({"tlsCa": "/ca"}, {"MQLAKE_TLS": "0"}, ClientAccess(tls=ClientTls(ca="/ca"))),
        ({"tlsVerify": "Ca"}, {}, ClientAccess(tls=ClientTls(verify=Verify.CA))),
        ({}, {"MQLAKE_TLS_KEY_PASSWORD": "p"}, ClientAccess()),
        ({"tlsKeyPassword": "", "tlsCa": "", "tls": ""}, {}, ClientAccess()),
        ({"tlsKeyPassword": "p"}, {}, ClientAccess(tls=ClientTls(key_password="p"))),
        (
            {"tlsCert": "/c", "tlsKey": "/k"},
            {"MQLAKE_TLS_KEY_PASSWORD": "p", "MQLAKE_TLS_CERT": "/other"},
            ClientAccess(tls=ClientTls(cert="/c", key="/k", key_password="p")),
        ),
        (
            {"accessKey": "orders"},
            {"MQLAKE_ACCESS_KEY": "other", "MQLAKE_SECRET_KEY": "s"},
            ClientAccess(credentials=Credentials("orders", "s")),
        ),
        ({"nameServer": "a:1", "path": "/p"}, {"PATH": "/bin"}, ClientAccess()),
    ],
)
def test_options_describe_tls_and_credentials(
    given: dict[str, str], environment: dict[str, str], found: ClientAccess
) -> None:
    assert access_of(given, environment) == found


@pytest.mark.parametrize(
    ("given", "environment", "reason"),
    [
        ({"tls": "yes"}, {}, "tls .*is 'yes'"),
        ({}, {"MQLAKE_TLS": "no"}, "MQLAKE_TLS.*is 'no'"),
        ({"tlsVerify": "host"}, {}, "must be one of full, ca, none"),
        ({"tls": "false", "tlsCa": "/ca"}, {}, "tls is false, but tlsCa is given"),
        ({"secretKey": SECRET}, {}, "MQLAKE_ACCESS_KEY"),
        ({}, {"MQLAKE_ACCESS_KEY": "a"}, "secretKey .*MQLAKE_SECRET_KEY"),
    ],
)
def test_invalid_options_are_refused(
    given: dict[str, str], environment: dict[str, str], reason: str
) -> None:
    with pytest.raises(MqlakeError, match=reason):
        access_of(given, environment)


def test_no_combination_falls_back_to_clear_text_or_shows_a_secret() -> None:
    values = {"tls": ("true", "false"), "tlsVerify": ("full", "none")}
    choices = [
        ("", *values.get(option.name, (SECRET if option.is_secret else "/file",)))
        for option in OPTIONS
    ]
    for texts in product(*choices):
        given = {option.name: text for option, text in zip(OPTIONS, texts, strict=True) if text}
        asks = given.keys() & {option.name for option in OF_TLS}
        try:
            found = access_of(given, {})
        except MqlakeError as error:
            shown = str(error)
            is_contradiction = bool(asks) and given.get("tls") == "false"
            assert is_contradiction or ("accessKey" in given) != ("secretKey" in given)
        else:
            shown = repr(found)
            assert (found.tls is not None) == (given.get("tls") == "true" or bool(asks))
        assert SECRET not in shown


def test_names_on_command_lines_and_in_environments() -> None:
    found = {option.name: (option.flag, option.variable) for option in OPTIONS}
    assert found["tls"] == ("--tls", "MQLAKE_TLS")
    assert found["tlsKeyPassword"] == ("--tls-key-password", "MQLAKE_TLS_KEY_PASSWORD")
    assert found["secretKey"] == ("--secret-key", "MQLAKE_SECRET_KEY")
