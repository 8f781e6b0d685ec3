"""What a run skipped, and what to install so that it skips nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

_INSTALL = re.compile(r"((?:apt-get|pip) install) ([^)\n]+)")


def summary(reasons: Sequence[str]) -> list[str]:
    """Return lines that name the packages whose absence skipped tests.

    Args:
        reasons: The reason of each skipped test. One that a package would remove contains the
            command that installs it, such as `apt-get install maven`.
    """
    if not reasons:
        return []
    packages: defaultdict[str, set[str]] = defaultdict(set)
    installable = 0
    for reason in reasons:
        found = _INSTALL.findall(reason)
        installable += bool(found)
        for command, names in found:
            packages[command].update(names.split())
    lines = [f"{len(reasons)} skipped, {installable} of them because a package is missing"]
    lines += [f"{command} {' '.join(sorted(packages[command]))}" for command in sorted(packages)]
    return lines
