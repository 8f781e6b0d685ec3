"""`mqlake admin`: messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.options import UsageError

if TYPE_CHECKING:
    from mqlake.admin.admin import Admin
    from mqlake.formats.record import Record
    from mqlake.protocol.bodies.running_info import DirectResult
    from mqlake.protocol.headers.send import SendMessageResponseHeader

MessageId = Annotated[str, typer.Option("-i", "--msgId", metavar="ID", help="Message id.")]
Count = Annotated[
    int, typer.Option("-c", "--maxNum", min=1, metavar="N", help="Maximum number of messages.")
]
BrokerName = Annotated[
    str, typer.Option("-b", "--brokerName", metavar="BROKER", help="A broker, by name or address.")
]


def query_msg_by_id(
    message_id: MessageId,
    topic: Annotated[
        str | None,
        typer.Option("-t", "--topic", metavar="TOPIC", help="Topic, if the id is a unique key."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--consumerGroup",
            metavar="GROUP",
            help="Let a member of this group consume the message now, and show the result.",
        ),
    ] = None,
    client: Annotated[
        str,
        typer.Option("-d", "--clientId", metavar="ID", help="The member of -g; default: any."),
    ] = "",
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a message by its offset id or, with -t, by its unique key.

    With -g, a consumer consumes it now, whatever the group consumed before. Offsets do not change.
    """
    import msgspec

    from mqlake.admin import messages, redelivery

    if client and group is None:
        raise UsageError("-d names a member of a group: name the group with -g")

    async def consume(admin: Admin) -> tuple[list[Record], DirectResult | None]:
        found = await messages.by_any_id(admin, topic, message_id)
        if group is None or not found:
            return found, None
        (record,) = found
        address = record.store_host
        return found, await redelivery.consume_directly(admin, address, group, client, record)

    found, result = run(names, consume)
    if result is None:
        return given.show_messages(found, json)
    return given.show_facts(msgspec.to_builtins(result), json)


def resend_dead_letter(
    message_id: Annotated[
        str, typer.Option("-i", "--msgId", metavar="ID", help="Offset message id.")
    ],
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Deliver a copy of a dead letter to its group again. The dead letter stays."""
    import msgspec

    from mqlake.admin import messages, redelivery

    async def resend(admin: Admin) -> SendMessageResponseHeader:
        record = await messages.by_id(admin, message_id)
        return await redelivery.resend(admin, record.store_host, record)

    return given.show_facts(msgspec.to_builtins(run(names, resend)), json)


def query_msg_by_unique_key(
    message_id: MessageId,
    topic: given.Topic,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a message by its unique key."""
    from mqlake.admin import messages

    found = run(names, lambda admin: messages.by_unique_key(admin, topic, message_id))
    return given.show_messages([found] if found else [], json)


def query_msg_by_key(
    topic: given.Topic,
    key: Annotated[str, typer.Option("-k", "--msgKey", metavar="KEY", help="A key or a tag.")],
    key_type: Annotated[
        str, typer.Option("-p", "--keyType", metavar="K|T", help="K: a key; T: a tag.")
    ] = "K",
    begin: Annotated[
        int,
        typer.Option(
            "--beginTimestamp",
            metavar="MS",
            help="Earliest store time, in milliseconds since 1970.",
        ),
    ] = 0,
    end: Annotated[
        int,
        typer.Option(
            "-e",
            "--endTimestamp",
            metavar="MS",
            help="Latest store time, in milliseconds since 1970.",
        ),
    ] = shared.LONGEST_TIME,
    most: Count = 64,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a topic's messages with a given key."""
    from mqlake.admin import messages

    found, code = given.run_partly(
        names,
        lambda admin, missing: messages.by_key(
            admin, topic, key, most, begin, end, index_type=key_type, missing=missing
        ),
        "its messages are missing",
    )
    return code or given.show_messages(found, json)


def query_msg_by_offset(
    topic: given.Topic,
    broker: BrokerName,
    queue: given.Queue,
    offset: Annotated[
        int, typer.Option("-o", "--offset", min=0, metavar="N", help="Queue offset.")
    ],
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show the message at a queue offset."""
    from mqlake.admin import messages

    found = run(names, lambda admin: messages.by_offset(admin, topic, broker, queue, offset))
    return given.show_messages([found], json)


def print_msg(
    topic: given.Topic,
    tags: Annotated[
        str,
        typer.Option("-s", "--subExpression", metavar="TAGS", help='Tags, such as "TagA || TagB".'),
    ] = "*",
    begin: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--beginTimestamp",
            metavar="TIME",
            help="Earliest store time, as milliseconds or yyyy-MM-dd#HH:mm:ss:SSS.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--endTimestamp",
            metavar="TIME",
            help="Latest store time, as milliseconds or yyyy-MM-dd#HH:mm:ss:SSS.",
        ),
    ] = None,
    most: Count = 64,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a topic's messages, oldest first in each queue."""
    from mqlake.admin import messages

    first = None if begin is None else given.milliseconds(begin)
    last = None if end is None else given.milliseconds(end)
    found = run(names, lambda admin: messages.of_topic(admin, topic, tags, first, last, most))
    return given.show_messages(found, json)


def consume_message(
    topic: given.Topic,
    broker: Annotated[
        str | None, typer.Option("-b", "--brokerName", metavar="BROKER", help="Only this broker.")
    ] = None,
    queue: Annotated[
        int | None, typer.Option("-i", "--queueId", min=0, metavar="N", help="Only this queue.")
    ] = None,
    offset: Annotated[
        int, typer.Option("-o", "--offset", min=0, metavar="N", help="First queue offset to show.")
    ] = 0,
    most: Annotated[
        int,
        typer.Option(
            "-c",
            "--MessageNumber",
            min=1,
            metavar="N",
            help="Maximum number of messages of each queue.",
        ),
    ] = 128,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a topic's messages, starting at a queue offset. Group offsets do not change."""
    from mqlake.admin import messages

    found = run(names, lambda admin: messages.of_queues(admin, topic, broker, queue, offset, most))
    return given.show_messages(found, json)


def send_message(
    topic: given.Topic,
    body: Annotated[str, typer.Option("-p", "--body", metavar="TEXT", help="Message body.")],
    keys: Annotated[
        str | None, typer.Option("-k", "--key", metavar="KEYS", help="Message keys.")
    ] = None,
    tags: Annotated[
        str | None, typer.Option("-c", "--tags", metavar="TAG", help="Message tag.")
    ] = None,
    broker: Annotated[
        str | None, typer.Option("-b", "--broker", metavar="BROKER", help="Broker to send to.")
    ] = None,
    queue: Annotated[
        int,
        typer.Option("-i", "--qid", min=-1, metavar="N", help="Queue id; needs -b."),
    ] = -1,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Send a message."""
    import msgspec

    from mqlake.admin import messages

    put = run(
        names,
        lambda admin: messages.send(
            admin, topic, body.encode(), keys=keys, tags=tags, broker=broker, queue_id=queue
        ),
    )
    return given.show_facts(msgspec.to_builtins(put), json)


def recall_message(
    topic: given.Topic,
    broker: BrokerName,
    handle: Annotated[
        str,
        typer.Option(
            "--recallHandle", metavar="HANDLE", help="Handle from the result of the send."
        ),
    ],
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Recall a message before its delivery time. The broker needs recallMessageEnable=true."""
    from mqlake.admin import messages

    run(names, lambda admin: messages.recall(admin, topic, broker, handle))
    return given.show_names("recalled", [handle], json)


COMMANDS = {
    "queryMsgById": query_msg_by_id,
    "queryMsgByKey": query_msg_by_key,
    "queryMsgByUniqueKey": query_msg_by_unique_key,
    "queryMsgByOffset": query_msg_by_offset,
    "printMsg": print_msg,
    "consumeMessage": consume_message,
    "sendMessage": send_message,
    "recallMessage": recall_message,
    "resendDeadLetter": resend_dead_letter,
}
