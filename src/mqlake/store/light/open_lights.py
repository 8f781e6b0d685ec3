"""The files of light queues that are open, the ones that were used last."""

from __future__ import annotations

from collections import OrderedDict

from mqlake.errors import FormatError
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import LightHeader
from mqlake.storage.protocol import OwnedDirectory, WritableFile
from mqlake.store.light.light_directory import light_path
from mqlake.store.light.light_file import LightFile

_MOST_OPEN = 64


class OpenLights:
    """Open files of light queues; others are opened when they are needed.

    Args:
        capacity: how many entries fit into each.
    """

    def __init__(self, directory: OwnedDirectory, capacity: int) -> None:
        self._directory, self._capacity = directory, capacity
        self._open: OrderedDict[tuple[str, int], LightFile] = OrderedDict()

    def file(self, topic: str, base: int) -> LightFile:
        """Return a file that exists.

        Raises:
            DiskError: it cannot be opened.
            FormatError: it has no valid header.
        """
        key = (topic, base)
        found = self._open.get(key)
        if found is None:
            path = light_path(topic, base)
            file = self._directory.open_writable(path)
            header = light_queue_file.decode_header(file.view())
            if header.base != base:
                raise FormatError(f"{path}: the header says that it starts at {header.base}")
            return self.add(topic, file, header)
        self._open.move_to_end(key)
        return found

    def add(self, topic: str, file: WritableFile, header: LightHeader) -> LightFile:
        """Return a file that was opened."""
        made = LightFile(file, header, self._capacity)
        self._open[topic, header.base] = made
        if len(self._open) > _MOST_OPEN:
            # The file is not closed: a sync may be running. The last user closes it.
            self._open.popitem(last=False)
        return made

    def forget(self, topic: str, base: int) -> None:
        """Forget a file that was removed."""
        self._open.pop((topic, base), None)

    def clear(self) -> None:
        """Forget all files."""
        self._open.clear()

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        Raises:
            SyncError: it was removed.
        """
        if self._open:
            self._open[next(reversed(self._open))].file.check_linked()

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()
