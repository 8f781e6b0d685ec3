"""The former name of PyIceberg's file I/O on Azure, which other programs may have configured."""

from __future__ import annotations

from mqlake.lake.files.azure_file_io import AzureFileIO

__all__ = ["AzureFileIO"]
