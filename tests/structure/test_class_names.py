"""The meaning of a class name does not depend on the file that it stands in."""

from __future__ import annotations

import ast
from collections import Counter

from tests.structure.package import modules, tree

EXPORTED = {
    "Batch": "`mqlake.dispatch` and `mqlake.formats.kafka`",
    "Compression": "`mqlake.client` and `mqlake.formats.kafka`",
    "Consumer": "`mqlake.client` and, for threads, `mqlake.client.blocking`",
    "Message": "`mqlake.client` and `mqlake.store`",
    "Producer": "`mqlake.client` and, for threads, `mqlake.client.blocking`",
    "Record": "`mqlake.formats` and `mqlake.formats.kafka`",
}
"""Names that two packages export: users would have to change their imports."""

ALLOWED = {
    "Access": 2,
    "Answers": 2,
    "Arrivals": 2,
    "Batches": 2,
    "Broker": 2,
    "BrokerRequests": 2,
    "BrokerState": 2,
    "Candidate": 2,
    "CheckReport": 2,
    "Connection": 4,
    "DeadLetters": 2,
    "Decision": 2,
    "Decoded": 2,
    "Delivery": 2,
    "Derivation": 2,
    "Derived": 2,
    "Digest": 2,
    "Dispatcher": 2,
    "Epoch": 3,
    "Files": 2,
    "Followed": 2,
    "Found": 4,
    "FrameReader": 2,
    "Gap": 2,
    "GroupOffsets": 2,
    "Head": 2,
    "Health": 2,
    "Identity": 3,
    "InFlight": 2,
    "Incarnations": 2,
    "KVTable": 2,
    "KeptTable": 2,
    "Keys": 3,
    "Kind": 4,
    "Known": 3,
    "Layout": 3,
    "Limits": 2,
    "Line": 3,
    "Listener": 2,
    "LogFile": 2,
    "Look": 2,
    "LoopThread": 2,
    "Losses": 3,
    "Members": 3,
    "Message": 3,
    "Metric": 2,
    "NameServer": 2,
    "OperatorAnswers": 2,
    "Options": 4,
    "Outcome": 4,
    "Page": 2,
    "Pairs": 2,
    "Part": 7,
    "Parts": 2,
    "Pattern": 2,
    "Piece": 3,
    "Plan": 4,
    "Position": 4,
    "ProducerMember": 2,
    "Query": 2,
    "Question": 2,
    "Queue": 4,
    "QueueBytes": 2,
    "QueueFiles": 2,
    "QueueJob": 2,
    "Range": 2,
    "Rate": 2,
    "ReadOptions": 2,
    "Reading": 2,
    "Redelivery": 2,
    "Refusal": 3,
    "RefusedError": 2,
    "Registration": 2,
    "Replay": 2,
    "Replies": 2,
    "Retention": 2,
    "Routes": 5,
    "Run": 5,
    "Sample": 2,
    "Scanned": 2,
    "Sender": 2,
    "Served": 3,
    "Shape": 2,
    "Source": 3,
    "Staged": 2,
    "State": 5,
    "Stretch": 3,
    "Subscription": 2,
    "Tail": 2,
    "Task": 4,
    "Term": 2,
    "Times": 2,
    "Topic": 2,
    "TopicConfigs": 2,
    "TopicTable": 2,
    "TopicTables": 2,
    "Topics": 2,
    "Totals": 2,
    "Tracer": 2,
    "Transactions": 2,
    "UserStatus": 2,
    "VerifyReport": 2,
    "Waiting": 4,
    "Walk": 3,
    "Walked": 2,
    "Wanted": 2,
    "Written": 4,
}
"""How many classes have a name, if there is more than one. Remove entries; add none."""


def class_names() -> Counter[str]:
    """Return how many classes have each name. `_Name` counts as `Name`: both read the same."""
    return Counter(
        node.name.lstrip("_")
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    )


def test_no_two_classes_have_the_same_name() -> None:
    found = class_names()
    found.subtract(EXPORTED.keys())
    assert {name: count for name, count in found.items() if count > 1} == ALLOWED


def test_exported_names_are_needed() -> None:
    found = class_names()
    assert all(found[name] > 1 for name in EXPORTED)
