"""The broker knows a store by its port and by plain values, not by its insides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import get_origin, get_type_hints

from mqlake.store import MessageStore, port
from tests import simulated
from tests.structure.package import PACKAGE, imported_names, tree

BROKER = PACKAGE / "broker"
STORE = "mqlake.store"
VALUES = {
    f"{STORE}.{name}"
    for name in (
        "append.message",
        "append.put_result",
        "bounds",
        "config.config_entries",
        "config.consumer_offsets",
        "config.delay_offsets",
        "config.properties_file",
        "live_settings",
        "queues.queue_kind",
        "reads.mapped_files",
        "results",
        "settings",
        "stored",
    )
}
PORT = f"{STORE}.port"
OPENS_THE_STORE = {("broker.py", STORE, "MessageStore")}


def sources() -> Iterator[tuple[str, Path]]:
    for path in sorted(BROKER.rglob("*.py")):
        yield str(path.relative_to(BROKER)), path


def test_only_the_port_and_values_are_imported() -> None:
    others = {
        (file, module, name)
        for file, path in sources()
        for module, name in imported_names(path)
        if module == STORE or module.startswith(f"{STORE}.")
        if module != PORT and (module not in VALUES or not name)
    }
    assert others == OPENS_THE_STORE


def test_nothing_reaches_into_the_core() -> None:
    found = {
        (file, node.lineno)
        for file, path in sources()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("core", "_core")
    }
    assert not found


def test_a_message_store_has_the_parts_that_the_port_names(tmp_path: Path) -> None:
    async def run() -> None:
        async with MessageStore.open(tmp_path) as store:
            parts = get_type_hints(port.Store)
            assert len(parts) > 20
            for name, kind in parts.items():
                part = getattr(store, name)
                if not getattr(kind, "_is_protocol", False):
                    origin = get_origin(kind)
                    assert isinstance(part, kind if origin is UnionType else origin or kind), name

    simulated.run(run())


def test_the_port_names_parts_and_repeats_nothing() -> None:
    module = tree(Path(port.__file__))
    (store,) = (node for node in module.body if isinstance(node, ast.ClassDef))
    assert all(isinstance(node, ast.AnnAssign) for node in store.body[1:])
    assert not [node for node in module.body if isinstance(node, ast.FunctionDef)]
