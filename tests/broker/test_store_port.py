"""The broker knows a store by its port and by plain values, not by its insides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_origin, get_type_hints

import mqlake.broker
from mqlake.store import MessageStore, port
from tests import simulated

BROKER = Path(mqlake.broker.__file__).parent
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
        "reads.copied_ahead",
        "results",
        "settings",
        "stored",
    )
}
PORT = f"{STORE}.port"
OPENS_THE_STORE = {("broker.py", STORE, "MessageStore")}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(BROKER.rglob("*.py")):
        yield str(path.relative_to(BROKER)), ast.parse(path.read_text(), str(path))


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield modules and what is imported of them, "" for the modules themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield from ((node.module or "", each.name) for each in node.names)


def test_only_the_port_and_values_are_imported() -> None:
    others = {
        (file, module, name)
        for file, tree in sources()
        for module, name in imports(tree)
        if module == STORE or module.startswith(f"{STORE}.")
        if module != PORT and (module not in VALUES or not name)
    }
    assert others == OPENS_THE_STORE


def test_nothing_reaches_into_the_core() -> None:
    found = {
        (file, node.lineno)
        for file, tree in sources()
        for node in ast.walk(tree)
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
                    assert isinstance(part, get_origin(kind) or kind), name

    simulated.run(run())


def test_the_port_names_parts_and_repeats_nothing() -> None:
    tree = ast.parse(Path(port.__file__).read_text())
    (store,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert all(isinstance(node, ast.AnnAssign) for node in store.body[1:])
    assert not [node for node in tree.body if isinstance(node, ast.FunctionDef)]
