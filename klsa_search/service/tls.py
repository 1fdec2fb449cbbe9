"""Check the certificate of a service before it is used."""

from __future__ import annotations

import ssl
from pathlib import Path

from klsa_search.errors import SettingsError


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Raise SettingsError unless a certificate and its key, in one file or two, match; OSError."""
    if certificate is None:
        if key is not None:
            raise SettingsError(
                f"`{key}` is a key without certificate; give --tls-certificate too",
                field="tls_key",
            )
        return
    try:
        # The empty password keeps OpenSSL from prompting on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except FileNotFoundError:
        gone = next(path for path in (certificate, key) if path and not path.exists())
        raise FileNotFoundError(2, "No such file or directory", str(gone)) from None
    except ssl.SSLError as wrong:
        with_key = f" and {key}" if key else ""
        raise SettingsError(
            f"`{certificate}`{with_key} cannot be used for TLS ({wrong.reason or wrong}); give a "
            "certificate in PEM, and its key without a password",
            field="tls_certificate",
        ) from None
