"""Folders can be read at a glance, and a file is worth to be opened."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.structure.package import imports, modules, place

FILES = 20
"""At most so many files are in one folder."""

LINES = 40
"""A shorter file is part of its importer, if that is the only one and in the same folder."""

FULL = {
    "dispatch/compiled": 25,
    "formats": 31,
}
"""How many files are in a folder, if there are more. Lower a number; add none."""

SHORT = {
    "broker/admin/accounts.py",
    "broker/quotas.py",
    "broker/state/client_clock.py",
    "broker/state/message_topics.py",
    "doctor/kernels.py",
    "namesrv/access.py",
    "replica/origin.py",
    "taskiq/border.py",
    "testing/advanced_clock.py",
}
"""The shorter files that are left. Remove entries; add none."""


def full_folders() -> dict[str, int]:
    """Return the folders that have too many files, and how many."""
    found = Counter(place(path.parent) for path in modules().values() if path.name != "__init__.py")
    return {folder: count for folder, count in found.items() if count > FILES}


def short_files() -> set[str]:
    """Return the short files that have one importer, which is in the same folder."""
    known = modules()
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for imported in known.keys() & set(imports(path, known)) - {name}:
            importers[imported].add(name)
    return {
        place(path)
        for name, path in known.items()
        if len(path.read_text().splitlines()) < LINES and len(importers[name]) == 1
        for importer in importers[name]
        if known[importer].parent == path.parent and known[importer].name != "__init__.py"
    }


def test_folders_have_few_files() -> None:
    assert full_folders() == FULL


def test_short_files_have_several_importers() -> None:
    assert short_files() == SHORT
