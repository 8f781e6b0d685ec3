"""Answers and errors of brokers become codes of the service."""

from __future__ import annotations

import logging

import pytest

from mqlake.errors import FormatError, MqlakeError
from mqlake.grpc.messages import Code
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, request, response
from mqlake.protocol.errors import RemotingError
from mqlake.proxy.errors import OK, StatusError, check, outcome_of, outcome_of_error
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

ASKED = request(1)


def answer(code: int, remark: str | None = None) -> Command:
    return response(ASKED, code, remark=remark)


@pytest.mark.parametrize(
    ("code", "remark", "found"),
    [
        (ResponseCode.SUCCESS, None, Code.OK),
        (ResponseCode.SYSTEM_BUSY, "busy", Code.TOO_MANY_REQUESTS),
        (ResponseCode.SERVICE_NOT_AVAILABLE, "busy", Code.TOO_MANY_REQUESTS),
        (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "no", Code.NOT_IMPLEMENTED),
        (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "g", Code.CONSUMER_GROUP_NOT_FOUND),
        (ResponseCode.TOPIC_NOT_EXIST, "t", Code.TOPIC_NOT_FOUND),
        (ResponseCode.NO_PERMISSION, "no", Code.UNAUTHORIZED),
        (ResponseCode.MESSAGE_ILLEGAL, "long", Code.INTERNAL_SERVER_ERROR),
        (
            ResponseCode.SYSTEM_ERROR,
            "org.apache.rocketmq.acl.common.AclException: no",
            Code.UNAUTHORIZED,
        ),
        (99_999, "what?", Code.INTERNAL_SERVER_ERROR),
    ],
)
def test_each_code_of_a_broker_has_one(code: int, remark: str | None, found: Code) -> None:
    outcome = outcome_of(answer(code, remark))
    assert (outcome.code, outcome.message) == (found, remark or "OK")
    if found is Code.OK:
        assert check(answer(code)).code == code
        return
    with pytest.raises(StatusError) as refused:
        check(answer(code, remark))
    assert (refused.value.code, refused.value.message) == (found, remark)
    assert outcome_of_error(RemotingError(code, remark or ""), "a call") == outcome


@pytest.mark.parametrize(
    ("error", "code", "message", "is_logged"),
    [
        (StatusError(Code.ILLEGAL_TOPIC, "bad"), Code.ILLEGAL_TOPIC, "bad", False),
        (RequestTimeoutError("late"), Code.PROXY_TIMEOUT, "late", False),
        (ConnectionFailedError("gone"), Code.INTERNAL_SERVER_ERROR, "gone", False),
        (FormatError("odd"), Code.INTERNAL_SERVER_ERROR, "odd", False),
        (MqlakeError("disk"), Code.INTERNAL_SERVER_ERROR, "disk", True),
        (KeyError("x"), Code.INTERNAL_SERVER_ERROR, "KeyError: 'x'", True),
    ],
)
def test_unexpected_errors_are_logged_and_answered(
    error: Exception,
    code: Code,
    message: str,
    is_logged: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "mqlake.proxy"):
        outcome = outcome_of_error(error, "10.0.0.1:1: SendMessage")
    assert (outcome.code, outcome.message) == (code, message)
    assert bool(caplog.messages) is is_logged


def test_a_long_message_is_cut() -> None:
    assert len(OK._replace(message="x" * 5000).status.message) == 1024
