"""Archives are unpacked in the same way on every release of Python."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(packed: Path, directory: Path) -> None:
    """Unpack a tar archive into a directory."""
    with tarfile.open(packed) as archive:
        # Early releases of Python 3.11 have no filters, and take no argument for one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)
