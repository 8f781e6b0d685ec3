"""What each public package exports, and that users need nothing else.

A name that is added to a table here is a promise; one that is removed breaks somebody's program.
"""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mqlake
from mqlake.exports import full_name

ROOT = Path(__file__).parents[1]
SOURCE = Path(mqlake.__file__).parent
HEAVY = ("numba", "numpy", "pyarrow", "pyspark")

EXPORTS = {
    "mqlake": {"open"},
    "mqlake.admin": {"Admin"},
    "mqlake.arrow": {"SETTINGS", "ArrowBatch", "ArrowConsumer"},
    "mqlake.broker": {"Broker", "BrokerSettings", "make_broker_settings"},
    "mqlake.client": {
        "BrokerError", "ClientError", "ClientMetrics", "ClientTls", "ClosedError", "Cluster",
        "Compression", "ConsumedMessage", "Consumer", "ConsumerSettings", "Credentials", "Message",
        "MessageQueue",
        "NoReplyError", "NoRouteError", "NotStoredError", "PerhapsStoredError", "PoppedMessage",
        "Producer", "PullConsumer", "ReceivedMessage", "RefusedError", "SendError", "SendResult",
        "SendStatus", "SimpleConsumer", "Sql", "Transaction", "TransactionState", "Tries",
        "Verify",
    },
    "mqlake.dispatch": {
        "Batch", "Gap", "IndexFileBuilder", "SegmentScan", "Want", "group", "to_arrow",
    },
    "mqlake.formats": {
        "Checkpoint", "Damage", "Dialect", "Fault", "IndexEntry", "IndexHeader", "QueueEntry",
        "Record",
    },
    "mqlake.formats.kafka": {
        "Batch", "Compression", "NewRecord", "PartitionName", "Record", "TimestampType",
    },
    "mqlake.jobs": {"Engine", "LocalEngine", "Progress"},
    "mqlake.jobs.convert": {"ConvertReport", "convert_to_kafka", "convert_to_rocketmq"},
    "mqlake.jobs.export": {"ExportReport", "Selection", "export"},
    "mqlake.jobs.rebuild": {"RebuildReport", "rebuild"},
    "mqlake.jobs.verify": {"VerifyReport", "verify"},
    "mqlake.kafka": {
        "CorruptIndexError", "FullIndexError", "InvalidOffsetError", "Isolation", "LogDirectory",
        "LogSettings", "OffsetOverflowError", "OwnedLogDirectory", "OwnedPartition", "Partition",
        "PartitionPath", "PartitionPaths", "RecordScan", "TransactionStateError", "by_offset",
        "by_time", "find_partitions", "inspect", "rebuild_index", "recover", "to_arrow",
        "verify_partition", "verify_partitions",
    },
    "mqlake.namesrv": {"NameServer", "NamesrvSettings", "make_namesrv_settings"},
    "mqlake.protocol": {
        "BodyError", "Command", "FrameError", "Header", "HeaderError", "Permission",
        "RemotingError", "RequestCode", "ResponseCode", "Serialization", "decode_body",
        "encode_body", "oneway", "request", "response",
    },
    "mqlake.remoting": {
        "Check", "ClientAuth", "ClientTls", "ConnectionFailedError", "Limits", "Peer",
        "RemotingClient", "RemotingServer", "RequestTimeoutError", "Route", "ServerTls", "TlsMode",
        "Verify",
    },
    "mqlake.spark": {
        "ConnectEngine", "JobMetrics", "KafkaLogDataSource", "QueryMetrics", "RocketMQDataSource",
        "Session", "SparkEngine", "decode", "messages", "open_session", "progress_lines", "pruned",
        "register",
    },
    "mqlake.spark.follow": {
        "CheckReport", "DispatchReport", "FollowOptions", "FollowReport", "Format", "ReplayReport",
        "StoreQuery", "check", "dispatch", "follow", "replay",
    },
    "mqlake.storage": {
        "ArrowDirectory", "Clock", "Directory", "DiskUsage", "LocalDirectory",
        "LocalOwnedDirectory", "MemoryDirectory", "OwnedDirectory", "OwnerLock", "ReadableFile",
        "SystemClock", "WritableFile", "open_url",
    },
    "mqlake.store": {
        "BlockingMessageStore", "EndStatus", "Ended", "GetResult", "Message", "MessageBatch",
        "MessageStore", "PutError", "PutResult", "PutStatus", "QueryResult", "Status",
        "StoreReader", "StoreReport", "StoreSettings",
    },
    "mqlake.table": {"LogTable", "open"},
    "mqlake.testing": {"RunningBroker", "broker"},
}  # fmt: skip
"""The names that each package exports."""

MODULES = {
    "mqlake.admin": {"brokers", "groups", "messages", "names", "offsets", "topics"},
    "mqlake.formats": {
        "abort_file", "batch_consume_queue", "checkpoint", "config", "consume_queue",
        "consume_queue_ext", "fastjson", "file_name", "host", "index_file", "java_string", "kafka",
        "message_batch", "message_id", "message_json", "properties", "record", "sys_flag",
        "timer_checkpoint", "timer_log",
    },
    "mqlake.formats.kafka": {
        "checkpoint_file", "compression", "control_record", "file_name", "message_set",
        "offset_index", "partition_metadata", "producer_snapshot", "record_batch", "record_json",
        "time_index", "transaction_index",
    },
}  # fmt: skip
"""Modules that users import whole, for their functions have the same short names in each."""

EXCEPTIONS = {
    "mqlake.errors": "a module without a package: it is a front door itself",
    "mqlake.kombu": "is imported for what it does: it registers a transport; needs Celery",
    "mqlake.taskiq": "needs taskiq",
    "mqlake.testing.fixtures": "needs pytest, and a fixture is named as the function that it calls",
}
"""Modules that users import from, besides front doors."""

_IMPORT = re.compile(
    r"\bfrom (mqlake[\w.]*) import (?:\(([^)]*)\)|([\w ,]+))|\bimport (mqlake[\w.]*)"
)


def init(package: str) -> Path:
    return SOURCE.joinpath(*package.split(".")[1:], "__init__.py")


def is_type_checking(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def typed(package: str) -> dict[str, str]:
    """Return what a type checker sees: names by the module that they come from.

    `mqlake` has a stub for it: it may import nothing, not even for type checkers, or all of its
    packages would depend on those of its front door.
    """
    stub = init(package).with_suffix(".pyi")
    lines = ast.parse((stub if stub.exists() else init(package)).read_text()).body
    if not stub.exists():
        lines = [
            line
            for statement in filter(is_type_checking, lines)
            if isinstance(statement, ast.If)
            for line in statement.body
        ]
    found: dict[str, str] = {}
    for line in lines:
        if stub.exists() and not isinstance(line, ast.ImportFrom):
            continue
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            assert alias.asname == alias.name, "`import X as X` exports X"
            found[alias.name] = line.module or ""
    return found


def mapped(package: str) -> dict[str, str]:
    """Return what a program sees: names by the module that they come from."""
    for node in ast.walk(ast.parse(init(package).read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_exports":
            modules: dict[str, str] = ast.literal_eval(node.args[1])
            return {name: full_name(package, module) for name, module in modules.items()}
    return {}


def past_front_doors(text: str) -> list[str]:
    """Return what a text imports from elsewhere than front doors."""
    found: list[str] = []
    for module, several, few, whole in _IMPORT.findall(text):
        if whole or module in EXCEPTIONS:
            found += [whole] if whole and whole not in (EXPORTS | EXCEPTIONS) else []
            continue
        names = {name.split()[0] for name in (several or few).split(",") if name.strip()}
        allowed = EXPORTS.get(module, set()) | MODULES.get(module, set())
        found += [f"{module}.{name}" for name in sorted(names - allowed)]
    return found


@pytest.mark.parametrize("package", EXPORTS)
def test_types_and_programs_see_the_same(package: str) -> None:
    assert typed(package).keys() == EXPORTS[package]
    assert mapped(package) == typed(package)


@pytest.mark.parametrize("package", EXPORTS)
def test_names_are_found(package: str) -> None:
    door = import_module(package)
    assert set(dir(door)) >= EXPORTS[package]
    for name, module in mapped(package).items():
        assert getattr(door, name) is getattr(import_module(module), name)
        assert name in vars(door)
    for name in MODULES.get(package, ()):
        import_module(f"{package}.{name}")
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = door.nothing


@pytest.mark.parametrize("package", EXPORTS)
def test_no_name_is_that_of_a_module(package: str) -> None:
    # The import of such a module would replace what the package exports.
    modules = {module.name for module in pkgutil.iter_modules([str(init(package).parent)])}
    assert not EXPORTS[package] & modules


def test_no_other_package_exports() -> None:
    files = SOURCE.rglob("__init__.py")
    doors = {file for file in files if "lazy_exports(" in file.read_text()}
    assert doors == {init(package) for package in EXPORTS}


def test_front_doors_load_nothing_heavy() -> None:
    code = f"import sys, {', '.join(EXPORTS)}; print([m for m in {HEAVY} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_pages_and_examples_use_front_doors() -> None:
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*")]
    texts = {str(file): file.read_text() for file in files if file.suffix in (".md", ".py")}
    texts |= {package: import_module(package).__doc__ or "" for package in EXPORTS}
    found = {name: past_front_doors(text) for name, text in texts.items()}
    assert {name: imports for name, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from mqlake.store import Message, StoreReader\n", []),
        ("`from mqlake.testing.fixtures import broker`", []),
        ("import mqlake.store", []),
        ("from mqlake.formats import record as format", []),
        ("import mqlake.store.reader", ["mqlake.store.reader"]),
        ("    from mqlake.store.reader import StoreReader", ["mqlake.store.reader.StoreReader"]),
        ("from mqlake.store import (\n    Message,\n    reader,\n)\n", ["mqlake.store.reader"]),
    ],
)
def test_what_goes_past_a_front_door(text: str, found: list[str]) -> None:
    assert past_front_doors(text) == found


@pytest.mark.parametrize("package", EXPORTS)
def test_a_star_imports_what_a_package_exports(package: str) -> None:
    found: dict[str, object] = {}
    exec(f"from {package} import *", found)
    assert found.keys() - {"__builtins__"} == EXPORTS[package]
