"""Who changes the disk, and who asks for the time: by the syntax tree of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqlake

SOURCE = Path(mqlake.__file__).parent

WRITERS = {
    "storage/": "the seam itself",
    "jobs/": "tasks fill a scratch directory, which is synced, and handed over by jobs/swap.py",
    "jobs/convert/": "written beside, synced, and renamed into place as a whole",
    "spark/sink/": "what tasks stage for the commit; after a crash nobody reads it",
    "lake/": "Parquet data files, and the directories of delta-rs and PyIceberg",
    "dispatch/": "memory without a file",
    "kernels/": "caches of compiled kernels",
    "formats/kafka/compression.py": "memory without a file",
    "store/config/properties_file.py": "the permissions of the file of settings that was given",
    "cli/replicating.py": "the directory above the copies, before there is a store",
    "remoting/tls/self_signed.py": "a certificate for tests, in a temporary directory",
    "cli/output.py": "standard output that is closed",
    "console/sql/process.py": "the result of a query, in memory",
    "doctor/machine.py": "a temporary file, whose syncs are measured",
    "spark/": "scratch directories of a session, caches of the JVM, marks of a check",
    "testing/": "brokers in temporary directories",
    "programs/reference.py": "an empty store in a temporary directory, for a page of the docs",
}
"""Where the disk may be changed without the seam, and why; a path ends in / for its modules."""

ON_THE_SEAM = {
    "jobs/swap.py",
    "spark/follow/derived_files.py",
    "lake/followers/identity.py",
    "spark/sink/commit.py",
    "spark/sink/journal.py",
    "spark/sink/roll_back.py",
}
"""Modules of those packages that own what a crash must not harm."""

CLOCKS = {
    "storage/clock.py": "the clock itself",
    "kernels/cache.py": "since when a cache is unused, told by its directory's time",
    "spark/shared_check.py": "how long a check waits for a network file system",
}

_OS = {
    "chmod", "fdatasync", "fsync", "ftruncate", "link", "makedirs", "mkdir", "open",
    "posix_fallocate", "pwrite", "remove", "rename", "replace", "rmdir", "symlink", "sync",
    "truncate", "unlink", "utime", "write",
}  # fmt: skip
_PATH = {
    "hardlink_to", "mkdir", "rename", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
}  # fmt: skip
_TIMES = {"time", "time_ns", "monotonic", "monotonic_ns", "now", "utcnow", "today"}


def _writes(call: ast.Call) -> bool:
    """Say whether a call changes the disk, as far as its name tells."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and _is_for_writing(call.args[1:])
    if not isinstance(function, ast.Attribute):
        return False
    name, owner = function.attr, ast.unparse(function.value)
    if owner == "os":
        return name in _OS
    if owner in ("shutil", "tempfile"):
        return name not in ("disk_usage", "which", "gettempdir")
    if name == "open":
        return _is_for_writing(call.args)
    if name == "replace":  # `str.replace` and `OwnedDirectory.replace` take two
        is_other = owner.endswith(("_table", "structs", ".live"))
        return len(call.args) == 1 and not call.keywords and not is_other
    return name in _PATH or (owner, name) == ("mmap", "mmap") or name == "ParquetWriter"


def _is_for_writing(arguments: list[ast.expr]) -> bool:
    modes = [one.value for one in arguments[:1] if isinstance(one, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)


def _asks_for_time(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    return function.attr in _TIMES and ast.unparse(function.value) in ("time", "datetime", "date")


def _calls(module: Path) -> Iterator[ast.Call]:
    nodes = ast.walk(ast.parse(module.read_text()))
    return (node for node in nodes if isinstance(node, ast.Call))


MODULES = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}


def _is_listed(module: str) -> bool:
    listed = {module, *(f"{above.as_posix()}/" for above in Path(module).parents)}
    return module not in ON_THE_SEAM and bool(listed & WRITERS.keys())


def test_whoever_changes_the_disk_goes_through_the_seam() -> None:
    found = [
        f"{module}:{call.lineno}: {ast.unparse(call)}"
        for module, path in MODULES.items()
        if not _is_listed(module)
        for call in _calls(path)
        if _writes(call)
    ]
    assert not found, "\n".join(found)


def test_the_time_is_asked_of_one_clock() -> None:
    found = [
        f"{module}:{call.lineno}: {ast.unparse(call)}"
        for module, path in MODULES.items()
        if module not in CLOCKS
        for call in _calls(path)
        if _asks_for_time(call)
    ]
    assert not found, "\n".join(found)


def test_listed_modules_exist() -> None:
    assert MODULES.keys() >= ON_THE_SEAM
    for listed in (*WRITERS, *CLOCKS):
        modules = [module for module in MODULES if module.startswith(listed)]
        calls = [call for module in modules for call in _calls(MODULES[module])]
        assert any(_writes(call) or _asks_for_time(call) for call in calls), listed


@pytest.mark.parametrize(
    "text",
    [
        "os.replace(a, b)",
        "os.pwrite(fd, data, 0)",
        "path.unlink(missing_ok=True)",
        "path.replace(target)",
        "path.open('xb', buffering=0)",
        "open(path, 'r+')",
        "shutil.rmtree(path)",
        "mmap.mmap(fd, 0)",
    ],
)
def test_changes_are_seen(text: str) -> None:
    [call] = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    assert _writes(call)


@pytest.mark.parametrize(
    "text", ["text.replace(a, b)", "directory.replace(a, b)", "path.open('rb')", "os.stat(path)"]
)
def test_what_changes_nothing_is_left_alone(text: str) -> None:
    [call] = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    assert not _writes(call)
