"""Stores that once made something fail, cut down to what did it: path -> content in Base64."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from mqlake.formats.file_name import parse_segment_name
from mqlake.formats.record import Record
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader
from tests.hostile.cases import Case, Target
from tests.hostile.stores import Files, Store
from tests.hostile.targets import commands, jobs, readers, scans

FOLDER = Path(__file__).parents[1] / "corpus"


def replayed(case: Case) -> None:
    """Feed each store to all targets that take stores."""
    for path in sorted(FOLDER.iterdir()):
        files = load(path)
        case.story[:] = [path.name]
        case.feed(sum(map(len, files.values())))
        readers.check(case, Store(files, _records(files)))
        for tasks in jobs.TASKS:
            jobs.check(case, files, tasks)
        commands.check(case, files)
        for name, data in files.items():
            folder, _, file = name.partition("/")
            base = parse_segment_name(file)
            if folder == "commitlog" and base is not None and base + len(data) < 1 << 63:
                scans.check(case, data, base)


def load(path: Path) -> Files:
    return {name: base64.b64decode(data) for name, data in json.loads(path.read_text()).items()}


def _records(files: Files) -> list[Record]:
    with StoreReader.open(MemoryDirectory(files)) as reader:
        found = reader.record_at(reader.min_offset)
    return [found] if found else []


TARGETS = (
    Target(
        "corpus",
        "Stores that caused a failure before, through all targets that take stores.",
        replayed,
        0.0,
    ),
)
