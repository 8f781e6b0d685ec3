"""Settings of object stores, as delta-rs and PyIceberg name them.

If a setting is missing, these libraries look in their usual places, such as the AWS_*, GOOGLE_* and
AZURE_* variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mqlake.storage.remote import azure_store, google_store
from mqlake.storage.remote.azure_store import account_of, azure_settings
from mqlake.storage.remote.google_store import google_settings, is_anonymous
from mqlake.storage.remote.hadoop_settings import settings_of_files

_DELTA = {
    "fs.s3a.endpoint": "AWS_ENDPOINT_URL",
    "fs.s3a.endpoint.region": "AWS_REGION",
    "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "fs.s3a.session.token": "AWS_SESSION_TOKEN",
    "fs.s3a.assumed.role.arn": "AWS_IAM_ROLE_ARN",
    google_store.ENDPOINT: "google_base_url",
    azure_store.KEY: "azure_storage_account_key",
    azure_store.SAS: "azure_storage_sas_key",
}
_ICEBERG = {
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.endpoint.region": "s3.region",
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
    "fs.s3a.assumed.role.arn": "s3.role-arn",
    google_store.ENDPOINT: "gcs.service.host",
    azure_store.KEY: "adls.account-key",
    azure_store.SAS: "adls.sas-token",
}
_NO_TOKEN = {"gcs.oauth2.token": "anonymous", "gcs.oauth2.token-expires-at": "4102444800000"}
"""PyIceberg cannot ask Google without a token; a server without accounts accepts any."""


def delta_options(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options of delta-rs. Commits need a store with conditional puts."""
    known = _known(url, settings)
    found = _renamed(known, _DELTA)
    if any(value.startswith("http://") for value in known.values()):
        found["allow_http"] = "true"
    match url.partition("://")[0]:
        case "gs":
            if is_anonymous(known):
                found["google_skip_signature"] = "true"
        case "abfss":
            found["azure_storage_account_name"] = account_of(url)
            if endpoint := known.get(azure_store.ENDPOINT):
                found["azure_endpoint"] = f"{_with_scheme(endpoint)}/{account_of(url)}"
        case _:
            if "Anonymous" in known.get("fs.s3a.aws.credentials.provider", ""):
                found["AWS_SKIP_SIGNATURE"] = "true"
            found["aws_conditional_put"] = "etag"
    return found


def iceberg_options(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of PyIceberg's FileIO."""
    known = _known(url, settings)
    found = _renamed(known, _ICEBERG)
    match url.partition("://")[0]:
        case "gs":
            return {**found, **(_NO_TOKEN if is_anonymous(known) else {})}
        case "abfss":
            found["py-io-impl"] = "mqlake.lake.files.azure_file_io.AzureFileIO"
            if endpoint := known.get(azure_store.ENDPOINT):
                scheme, _, host = _with_scheme(endpoint).partition("://")
                for kind in ("blob", "dfs"):
                    found[f"adls.{kind}-storage-scheme"] = scheme
                    found[f"adls.{kind}-storage-authority"] = host
        case _:
            if "Anonymous" in known.get("fs.s3a.aws.credentials.provider", ""):
                found["s3.anonymous"] = "true"
    return found


def _renamed(known: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {names[name]: value for name, value in known.items() if name in names}


def _known(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a store that are given, or in configuration files."""
    match url.partition("://")[0]:
        case "gs":
            return google_settings(settings)
        case "abfss":
            return azure_settings(url, settings)
        case _:
            return _known_of_s3(settings)


def _known_of_s3(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings, also those of configuration files and the endpoint of the environment."""
    known = {**settings_of_files("fs.s3a."), **settings}
    variables = (os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = known.get("fs.s3a.endpoint") or next(filter(None, variables), None)
    if endpoint is not None:
        is_plain = known.get("fs.s3a.connection.ssl.enabled", "true").lower() == "false"
        known["fs.s3a.endpoint"] = _with_scheme(endpoint, "http" if is_plain else "https")
    return known


def _with_scheme(endpoint: str, scheme: str = "https") -> str:
    return (endpoint if "://" in endpoint else f"{scheme}://{endpoint}").rstrip("/")
