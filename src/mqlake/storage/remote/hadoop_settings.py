"""Settings of Hadoop's file systems, from the configuration files of Hadoop and Spark.

A Python source sees neither Spark's settings nor Hadoop's. So they are read from the same files:
`core-site.xml` of HADOOP_CONF_DIR, then `spark-defaults.conf` of SPARK_CONF_DIR or SPARK_HOME, in
which their names begin with `spark.hadoop.`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mqlake.errors import StoreError

_OF_SPARK = "spark.hadoop."
_MOST_BYTES = 1 << 20
_LINE = re.compile(r"(\S+?)(?:\s*[=:]\s*|\s+)(.*)")


def settings_of_files(prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with a prefix; Spark's come before Hadoop's.

    Raises:
        StoreError: a file is there and cannot be read.
    """
    found = {**_of_hadoop(), **_of_spark()}
    return {name: value for name, value in found.items() if name.startswith(prefix)}


def _of_hadoop() -> dict[str, str]:
    place = os.environ.get("HADOOP_CONF_DIR")
    text = _read(Path(place) / "core-site.xml") if place else ""
    if not text:
        return {}
    # Imported late: most queries read no such file.
    from xml.etree import ElementTree as ET

    if "<!ENTITY" in text:
        raise StoreError(
            f"{place}/core-site.xml: entities are not supported: write their values instead"
        )
    try:
        properties = ET.fromstring(text).iter("property")  # noqa: S314 (no entities)
    except ET.ParseError as error:
        raise StoreError(f"{place}/core-site.xml: {error}") from None
    pairs = ((one.findtext("name"), one.findtext("value")) for one in properties)
    return {name.strip(): value.strip() for name, value in pairs if name and value}


def _of_spark() -> dict[str, str]:
    home = os.environ.get("SPARK_HOME")
    place = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    text = _read(Path(place) / "spark-defaults.conf") if place else ""
    lines = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {
        found[1].removeprefix(_OF_SPARK): found[2].strip()
        for found in lines
        if found and found[1].startswith(_OF_SPARK)
    }


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
