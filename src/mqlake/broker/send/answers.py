"""The answers to a producer about puts.

Upstream: `SendMessageProcessor.handlePutMessageResult`. The codes are upstream's, so that clients
retry what they retry there; the remark begins with upstream's words and continues with the reason.
"""

from __future__ import annotations

from msgspec.structs import replace

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.busy import BUSY, Busy
from mqlake.formats.host import encode_host
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, Serialization, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.template import frame_template
from mqlake.store.append.put_result import PutResult, PutStatus

_REFUSED = {
    PutStatus.CREATE_MAPPED_FILE_FAILED: (
        ResponseCode.SYSTEM_ERROR,
        "create mapped file failed, server is busy or broken",
    ),
    PutStatus.MESSAGE_ILLEGAL: (ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"),
    PutStatus.PROPERTIES_SIZE_EXCEEDED: (ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"),
    PutStatus.SERVICE_NOT_AVAILABLE: (
        ResponseCode.SERVICE_NOT_AVAILABLE,
        "service not available now",
    ),
    PutStatus.OS_PAGE_CACHE_BUSY: (
        BUSY,
        "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
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
    PutStatus.FLUSH_SLAVE_TIMEOUT: "SLAVE_TIMEOUT",
    PutStatus.SLAVE_NOT_AVAILABLE: "NO_SLAVE",
}
STORED = {
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The answers for a message that is in the log but lacks the promised copies."""


def refusal(result: PutResult) -> RemotingError:
    """Return the answer to a request whose put was refused."""
    code, words = _REFUSED[result.status]
    return RemotingError(code, f"{words}: {result.reason}")


_OK = PutStatus.PUT_OK
_GAPS = {"msgId": "%016X", "queueId": "%d", "queueOffset": "%d", "transactionId": "%s"}


class Answers:
    """Makes the answers to sends.

    Attributes:
        host: the beginning of all offset message ids: the address of the store.
        success: the templates of the answers to single messages, by serialization.
        binary_success: the answer with a binary header, without the position of the message.
    """

    def __init__(self, settings: BrokerSettings, busy: Busy) -> None:
        self._busy = busy
        self._common = {
            "MSG_REGION": settings.region_id,
            "TRACE_ON": "true" if settings.trace_on else "false",
        }
        # An offset message id is the address of the store, and the message's position in its log.
        self.host = encode_host(settings.broker_address).hex().upper()
        gaps = _GAPS | {"msgId": self.host + _GAPS["msgId"]}
        samples = {kind: Command(0, serialization=kind) for kind in Serialization}
        successes = {
            kind: response(sample, header=self._common) for kind, sample in samples.items()
        }
        self.binary_success = successes[Serialization.ROCKETMQ]
        self.success = {int(kind): frame_template(each, gaps) for kind, each in successes.items()}
        self._batch_success = {
            int(kind): frame_template(each, _GAPS | {"msgId": "%s"})
            for kind, each in successes.items()
        }

    def of(
        self,
        request: Command,
        result: PutResult,
        queue_id: int,
        unique_key: str,
        recall_handle: str | None = None,
        is_inner: bool = False,
    ) -> Command | bytes:
        """Return the answer to a request with this put result; or its frame.

        Args:
            is_inner: whether the request was put as an inner batch, whose own key is returned to
                the producer.
        """
        status, is_plain = result.status, recall_handle is None and not is_inner
        if status is _OK and is_plain and unique_key.isalnum() and unique_key.isascii():
            templates = self._batch_success if result.offsets else self.success
            where = result.message_id if result.offsets else result.physical_offset
            return templates[request.serialization].fill(
                where, queue_id, result.queue_offset, unique_key, request.opaque
            )
        if status in _REFUSED:
            return self._refusal(request, result)
        code, remark = ResponseCode.SUCCESS, None
        if status in STORED:
            code, remark = STORED[status], result.reason
            self._busy.count(_BUSY[status])
        values = (result.message_id, str(queue_id), str(result.queue_offset), unique_key)
        fields = {**self._common, **dict(zip(_GAPS, values, strict=True))}
        if recall_handle is not None:
            fields["recallHandle"] = recall_handle
        if is_inner:
            fields["batchUniqId"] = unique_key
        return response(request, code, fields, remark=remark)

    def failed(self, success: Command, result: PutResult) -> Command:
        """Return the answer to a send that was put, but lacks the promised copies.

        Args:
            success: its answer if it had them.
        """
        status = result.status
        if status in _REFUSED:
            return self._refusal(success, result)
        self._busy.count(_BUSY[status])
        return replace(success, code=int(STORED[status]), remark=result.reason)

    def _refusal(self, request: Command, result: PutResult) -> Command:
        if result.status in _BUSY:
            self._busy.count(_BUSY[result.status])
        error = refusal(result)
        return response(request, error.code, self._common, remark=error.remark)
