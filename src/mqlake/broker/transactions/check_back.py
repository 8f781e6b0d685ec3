"""CHECK_TRANSACTION_STATE: ask a producer how a transaction ended.

Upstream: `AbstractTransactionalMessageCheckListener`, `Broker2Client`.
"""

from __future__ import annotations

import logging

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.clients.members import Client
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.properties import UNIQ_KEY
from mqlake.formats.topic_names import HALF_TOPIC
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import oneway, request
from mqlake.protocol.headers.transactions import CheckTransactionHeader
from mqlake.store.port import CheckBack

_log = logging.getLogger(__name__)


class CheckBacks:
    """Asks a producer of the group that sent a half message, a different one each time."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime

    def ask(self, question: CheckBack) -> None:
        """Send a check; if no producer of the group is connected, the next check asks again."""
        producer = self._producer(question)
        if producer is None:
            _log.warning(
                "group %s has no connected producer that can be asked about the transaction "
                "at offset %d of the log",
                question.group,
                question.half.physical_offset,
            )
            return
        half = question.half
        key = half.properties.get(UNIQ_KEY)
        header = CheckTransactionHeader(
            topic=HALF_TOPIC,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.physical_offset,
            msg_id=key,
            transaction_id=key,
            offset_msg_id=half.message_id,
            broker_name=self._runtime.settings.broker_name,
        )
        try:
            body = _encode(question)
        except FormatError as error:
            _log.warning(
                "the producer of the half message at offset %d of the log cannot be asked: %s",
                half.physical_offset,
                error,
            )
            return
        producer.peer.send(oneway(RequestCode.CHECK_TRANSACTION_STATE, header, body))

    def _producer(self, question: CheckBack) -> Client | None:
        """Return a producer that may end the transaction: anybody may be in a group of producers,
        and the message is in the question.
        """
        access = self._state.access
        asked = request(RequestCode.SEND_MESSAGE_V2, {"b": question.topic})

        def may(client: Client) -> bool:
            return access.may(client.user, asked, client.peer.address)

        return self._state.clients.producer(question.group, may)


def _encode(question: CheckBack) -> bytes:
    """Return a half message as its producer knows it: with its own topic and queue."""
    half = question.half
    return record.encode(
        topic=question.topic,
        body=half.body,
        properties=question.properties,
        queue_id=question.queue_id,
        queue_offset=half.queue_offset,
        physical_offset=half.physical_offset,
        flag=half.flag,
        sys_flag=half.sys_flag,
        born_timestamp=half.born_timestamp,
        born_host=half.born_host,
        store_timestamp=half.store_timestamp,
        store_host=half.store_host,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.prepared_transaction_offset,
    )
