"""The content of a disk at one moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.crash.trace import ROOT


@dataclass(frozen=True)
class Snapshot:
    """Names of each directory and bytes of each file, by node; nodes without a name do no harm."""

    folders: Mapping[int, Mapping[str, int]]
    contents: Mapping[int, bytes]

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> Snapshot:
        """Return the tree of these paths."""
        folders: dict[int, dict[str, int]] = {ROOT: {}}
        contents: dict[int, bytes] = {}
        for path, data in files.items():
            *above, name = path.split("/")
            folder = ROOT
            for part in above:
                number = len(folders) + len(contents)
                folder = folders[folder].setdefault(part, number)
                folders.setdefault(folder, {})
            number = folders[folder][name] = len(folders) + len(contents)
            contents[number] = data
        return cls(folders, contents)

    def files(self) -> dict[str, bytes]:
        """Return path → bytes, ordered by path."""
        return dict(self._walk(ROOT, ""))

    def directories(self) -> list[str]:
        """Return the paths of the directories below the root, ordered."""
        return sorted(self._walk_folders(ROOT, ""))

    def _walk(self, folder: int, prefix: str) -> Iterator[tuple[str, bytes]]:
        for name, node in sorted(self.folders[folder].items()):
            if node in self.folders:
                yield from self._walk(node, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", self.contents[node]

    def _walk_folders(self, folder: int, prefix: str) -> Iterator[str]:
        for name, node in self.folders[folder].items():
            if node in self.folders:
                yield f"{prefix}{name}"
                yield from self._walk_folders(node, f"{prefix}{name}/")

    def digest(self) -> bytes:
        """Return what tells this tree from others: names and bytes."""
        whole = hashlib.blake2b(digest_size=16)
        for path, data in self._walk(ROOT, ""):
            whole.update(f"{path}\0{len(data)}\0".encode())
            whole.update(data)
        whole.update("\0".join(self.directories()).encode())
        return whole.digest()
