"""Settings to OpenSSL's contexts. The functions read files, and take milliseconds.

Upstream: `TlsHelper.buildSslContext`.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.options import ClientAuth, ClientTls, ServerTls, Verify
from mqlake.remoting.tls.self_signed import SelfSigned

_VERIFY: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRE: ssl.CERT_REQUIRED,
}


def server_context(options: ServerTls) -> ssl.SSLContext:
    """Return the context of a server.

    Raises:
        MqlakeError: a file cannot be read, certificate and key do not belong together, or a
            self-signed certificate cannot be created.
    """
    context = _new(ssl.PROTOCOL_TLS_SERVER)
    # Connections last for hours: resuming a session would save nothing.
    context.num_tickets = 0
    if options.protocols:
        context.set_alpn_protocols(list(options.protocols))
    if options.cert or options.key:
        _load_own(context, options)
    else:
        with SelfSigned() as (cert, key):
            context.load_cert_chain(cert, key)
    context.verify_mode = _VERIFY[options.client_auth]
    if options.client_auth is not ClientAuth.NONE:
        _load_trusted(context, options.ca, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(options: ClientTls) -> ssl.SSLContext:
    """Return the context of a client.

    Raises:
        MqlakeError: a file cannot be read, or certificate and key do not belong together.
    """
    context = _new(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.verify is Verify.FULL
    if options.verify is Verify.NONE:
        context.verify_mode = ssl.CERT_NONE
    else:
        _load_trusted(context, options.ca, ssl.Purpose.SERVER_AUTH)
    if options.cert or options.key:
        _load_own(context, options)
    return context


def reason_of(error: ssl.SSLError) -> str:
    """Return OpenSSL's words for an error, without the place in its source."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error)


def _new(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def _load_own(context: ssl.SSLContext, files: ServerTls | ClientTls) -> None:
    for name, path in (("certificate", files.cert), ("private key", files.key)):
        if not path:
            raise MqlakeError(f"TLS: a {name} is missing: set both the certificate and its key")
        _check_readable(path)
    try:
        # A callable keeps OpenSSL from asking on the terminal for the password of an encrypted key.
        context.load_cert_chain(files.cert, files.key, lambda: files.key_password)
    except ssl.SSLError as error:
        raise MqlakeError(
            f"TLS: certificate {files.cert} with key {files.key}: {reason_of(error)}"
        ) from None
    except OSError as error:
        raise MqlakeError(f"TLS: {files.cert}, {files.key}: {error.strerror}") from None


def _load_trusted(context: ssl.SSLContext, path: str, purpose: ssl.Purpose) -> None:
    if not path:
        context.load_default_certs(purpose)
        return
    _check_readable(path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise MqlakeError(f"TLS: trusted certificates {path}: {reason_of(error)}") from None


def _check_readable(path: str) -> None:
    """Raise an error that names the file: OpenSSL's does not."""
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise MqlakeError(f"TLS: {path}: {error.strerror}") from None
