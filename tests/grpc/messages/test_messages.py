"""The messages are those of RocketMQ's clients, and live beside theirs."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from mqlake.grpc.messages import (
    Code,
    Duration,
    Message,
    MessageType,
    Resource,
    SendMessageRequest,
    Status,
    SystemProperties,
    TelemetryCommand,
    Timestamp,
)
from mqlake.grpc.messages.build import PACKAGE


def test_fields_are_where_clients_have_them() -> None:
    message = Message(
        topic=Resource(name="t"),
        user_properties={"a": "b"},
        system_properties=SystemProperties(tag="x", message_type=MessageType.FIFO, queue_id=7),
        body=b"body",
    )
    data = SendMessageRequest(messages=[message]).SerializeToString()
    assert data.hex() == (
        "0a1c0a0312017412060a01611201621a070a0178300268072204" + b"body".hex()
    )  # fmt: skip
    assert SendMessageRequest.FromString(data).messages[0] == message


def test_optional_fields_know_whether_they_are_set() -> None:
    empty = SystemProperties()
    assert not empty.HasField("queue_offset")
    assert SystemProperties(queue_offset=0).HasField("queue_offset")


def test_a_oneof_has_one_field() -> None:
    command = TelemetryCommand()
    assert command.WhichOneof("command") is None
    command.settings.SetInParent()
    command.verify_message_command.nonce = "n"
    assert command.WhichOneof("command") == "verify_message_command"


def test_times_have_the_methods_of_protocol_buffers() -> None:
    duration, timestamp = Duration(), Timestamp()
    duration.FromMilliseconds(1500)
    timestamp.FromMilliseconds(1500)
    assert (duration.seconds, duration.nanos) == (1, 500_000_000)
    assert timestamp.ToMilliseconds() == 1500


def test_unknown_codes_are_kept() -> None:
    assert Status.FromString(Status(code=12345).SerializeToString()).code == 12345
    assert Code(20000).name == "OK"


def test_the_official_client_may_register_the_same_names() -> None:
    """It has them in the default pool, in files with these names."""
    pool = descriptor_pool.Default()
    file = descriptor_pb2.FileDescriptorProto(name="definition.proto", package=PACKAGE)
    file.message_type.add(name="Resource").field.add(name="other", number=1, type=5, label=1)
    pool.AddSerializedFile(file.SerializeToString())
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Resource"))
    assert [field.name for field in theirs.DESCRIPTOR.fields] == ["other"]
    assert [field.name for field in Resource.DESCRIPTOR.fields] == ["resource_namespace", "name"]
