"""What a producer is told of a put.

Upstream: `SendMessageProcessor.handlePutMessageResult`. The codes are upstream's, so that clients
retry what they retry there; the remark begins with upstream's words and goes on with the reason.
"""

from __future__ import annotations

from mqlake.broker.busy import Busy
from mqlake.broker.settings import BrokerSettings
from mqlake.remoting.codes import ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.errors import RemotingError
from mqlake.store.append.put_result import PutResult, PutStatus

_REFUSED = {
    PutStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken.",
    ),
    PutStatus.MESSAGE_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"),
    PutStatus.PROPERTIES_SIZE_EXCEEDED: (ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"),
    PutStatus.SERVICE_NOT_AVAILABLE: (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        "service not available now.",
    ),
    PutStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_BUSY,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while.",
    ),
    PutStatus.UNKNOWN_ERROR: (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR"),
    PutStatus.WHEEL_TIMER_NOT_ENABLE: (
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    ),
    PutStatus.WHEEL_TIMER_MSG_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, "timer message illegal"),
}
_BUSY = {
    PutStatus.CREATE_MAPPED_FILE_FAILED: "NO_FILE",
    PutStatus.SERVICE_NOT_AVAILABLE: "NOT_AVAILABLE",
    PutStatus.OS_PAGE_CACHE_BUSY: "PC_SYNCHRONIZED",
    PutStatus.UNKNOWN_ERROR: "DISK_FAILED",
    PutStatus.FLUSH_DISK_TIMEOUT: "FLUSH_TIMEOUT",
}


def refusal(result: PutResult) -> RemotingError:
    """Return the answer to a request of which the put was refused."""
    code, words = _REFUSED[result.status]
    return RemotingError(code, f"{words}: {result.reason}")


class Answers:
    """Makes the answers to sends."""

    def __init__(self, settings: BrokerSettings, busy: Busy) -> None:
        self._busy = busy
        self._common = {
            "MSG_REGION": settings.region_id,
            "TRACE_ON": "true" if settings.trace_on else "false",
        }

    def of(self, request: Command, result: PutResult, queue_id: int, unique_key: str) -> Command:
        """Return the answer to a request that was put, or refused, so."""
        status = result.status
        if status is PutStatus.PUT_OK:
            code, remark = 0, None
        elif status is PutStatus.FLUSH_DISK_TIMEOUT:
            code, remark = int(ResponseCode.FLUSH_DISK_TIMEOUT), result.reason
            self._busy.count(_BUSY[status])
        else:
            return self._refusal(request, result)
        answer = response(request, code, remark=remark)
        answer.known_fields = {
            **self._common,
            "msgId": result.message_id,
            "queueId": str(queue_id),
            "queueOffset": str(result.queue_offset),
            "transactionId": unique_key,
        }
        return answer

    def _refusal(self, request: Command, result: PutResult) -> Command:
        code, words = _REFUSED[result.status]
        if result.status in _BUSY:
            self._busy.count(_BUSY[result.status])
        return response(request, code, self._common, remark=f"{words}: {result.reason}")
