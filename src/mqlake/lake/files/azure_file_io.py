"""PyIceberg's access to Azure's object store by URLs that name the storage account."""

# pyright: basic
# Reason: pyiceberg carries few types.

from __future__ import annotations

from pyarrow.fs import FileSystem
from pyiceberg.io import ADLS_ACCOUNT_NAME
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties


class AzureFileIO(PyArrowFileIO):
    """Splits `abfss://container@account/path` as pyarrow wants it.

    PyIceberg's own class takes `container@account` for the name of the container, and wants the
    account as a property.
    """

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Return the scheme, the host, and the container with the path."""
        scheme, host, path = PyArrowFileIO.parse_location(location, properties)
        container, sign, rest = path.partition("@")
        if scheme not in ("abfs", "abfss") or not sign or "/" in container:
            return scheme, host, path
        return scheme, host, f"{container}/{rest.partition('/')[2]}"

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        account = (netloc or "").partition("@")[2].partition(".")[0]
        if account:
            self.properties = {ADLS_ACCOUNT_NAME: account, **self.properties}
        return super()._initialize_fs(scheme, netloc)
