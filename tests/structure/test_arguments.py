"""A call names its arguments if there are more than a reader can tell apart by position."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.structure.package import modules, place, tree

BY_POSITION = 6
"""At most so many arguments are passed by position."""

PARAMETERS = 10
"""At most so many parameters belong to a function; more belong together in a value."""

VARIADIC = {"add_row", "entry_point", "error", "info", "kernel", "map", "pack", "warning", "zip"}
"""Functions whose arguments have no names: any number of one kind, or those of a format, a log line
or a compiled function."""

FAST = {"client/received.py": "names would take 3 % of the time of a received message"}
"""Files that pass more arguments by position for speed."""

CALLS = {
    "auth/plain/accounts.py": 1,
    "broker/pull/requests.py": 1,
    "broker/send/send.py": 1,
    "formats/file_name.py": 1,
    "formats/kafka/message_set.py": 1,
    "formats/kafka/record_batch.py": 2,
    "formats/record.py": 2,
    "protocol/json_header.py": 1,
}
"""How many calls of a file pass more arguments by position. Lower a number; add none."""

DEFINITIONS = {
    "broker/pull/answers.py:answer",
    "dispatch/derived/index_entries.py:lookup_many",
    "dispatch/writing/encode.py:write_records",
}
"""Functions that take more parameters by position. Remove entries; add none."""

LONG = {
    "arrow/consumer.py:__init__": 11,
    "client/consumer/group_member.py:__init__": 11,
    "client/producer/producer.py:__init__": 16,
    "dispatch/scan.py:__init__": 12,
    "formats/kafka/record_batch.py:encode": 11,
    "formats/record.py:encode": 15,
    "replication/auto_switch/connection.py:__init__": 11,
    "spark/bodies/frame.py:decode": 13,
}
"""Functions that have more parameters in all. Remove entries; add none."""


def files() -> list[Path]:
    """Return the files to which this applies: compiled functions take arguments by position only.

    Their twins in plain Python have the same parameters.
    """
    return [
        path
        for path in modules().values()
        if not {"compiled", "reference"} & set(path.parts) and path.name != "kernel.py"
    ]


def functions(path: Path) -> Iterator[tuple[str, ast.arguments]]:
    """Yield the functions of a file, and their parameters."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{place(path)}:{node.name}", node.args


def by_position(parameters: ast.arguments) -> list[str]:
    """Return the parameters that can be passed by position, without `self` and `cls`."""
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def is_command(path: Path) -> bool:
    """Return whether the parameters of a file's functions are the options of commands."""
    return place(path).startswith("cli/commands/")


def compiled() -> set[str]:
    """Return the names of compiled functions."""
    return {
        node.name
        for path in modules().values()
        if "compiled" in path.parts
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    }


def called(call: ast.Call) -> str:
    """Return the name of the function that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def calls_by_position() -> Counter[str]:
    """Return how many calls of each file pass too many arguments by position."""
    exempt = compiled() | VARIADIC
    return Counter(
        place(path)
        for path in files()
        if place(path) not in FAST
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and len(node.args) > BY_POSITION
        if called(node) not in exempt
    )


def definitions_by_position() -> set[str]:
    """Return the functions that take too many arguments by position."""
    return {
        name
        for path in files()
        if not is_command(path)
        for name, parameters in functions(path)
        if len(by_position(parameters)) > BY_POSITION
    }


def long_functions() -> dict[str, int]:
    """Return the functions that have too many parameters, and how many."""
    counts = {
        name: len(by_position(parameters)) + len(parameters.kwonlyargs)
        for path in files()
        for name, parameters in functions(path)
    }
    return {name: count for name, count in counts.items() if count > PARAMETERS}


def test_calls_name_their_arguments() -> None:
    assert calls_by_position() == CALLS


def test_functions_take_few_arguments_by_position() -> None:
    assert definitions_by_position() == DEFINITIONS


def test_functions_have_few_parameters() -> None:
    assert long_functions() == LONG
