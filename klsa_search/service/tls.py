"""TLS: the certificate that the service shows, looked at before it listens."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from klsa_search.errors import SettingsError


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, in one file or two. SettingsError where they are no pair; OSError.

    A new certificate is taken up when the service is started again.
    """

    certificate: Path
    key: Path | None = None

    def __post_init__(self) -> None:
        """Load both, as the server will."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password that is none, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except FileNotFoundError:
            gone = next(path for path in (self.certificate, self.key) if path and not path.exists())
            raise FileNotFoundError(2, "No such file or directory", str(gone)) from None
        except ssl.SSLError as wrong:
            with_key = f" and {self.key}" if self.key else ""
            raise SettingsError(
                f"`{self.certificate}`{with_key} cannot be used for TLS "
                f"({wrong.reason or wrong}); give a certificate in PEM, and its "
                "key without a password",
                field="tls_certificate",
            ) from None


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Put both together; None without a certificate, SettingsError for a key alone."""
    if certificate is not None:
        return Tls(certificate, key)
    if key is not None:
        raise SettingsError(
            f"`{key}` is a key without certificate; give --tls-certificate too", field="tls_key"
        )
    return None
