"""The certificate of a service, and its replacement while the service runs."""

from __future__ import annotations

import ssl
from pathlib import Path

from klsa_search.errors import SettingsError


class Tls:
    """A certificate and its private key, in one file or two.

    SettingsError if they do not match; OSError.
    """

    def __init__(self, certificate: Path, key: Path | None = None) -> None:
        self.certificate, self.key = certificate, key
        self._context = self._load()

    def reload(self) -> None:
        """Read the files again, and use them for new connections.

        The current pair stays in use after SettingsError or OSError.
        """
        self._context = self._load()

    def install(self, context: ssl.SSLContext) -> None:
        """Let the context of a server present the current pair in each handshake.

        Loading a pair into a context in use would keep the old certificate for clients that prefer
        its type of key, and would lose the old key if the new pair does not match.
        """

        def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self._context

        context.sni_callback = choose  # called without a server name too

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # The empty password keeps OpenSSL from prompting on the terminal.
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
        return context


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Return the TLS configuration; None without a certificate, SettingsError for a key alone."""
    if certificate is not None:
        return Tls(certificate, key)
    if key is not None:
        raise SettingsError(
            f"`{key}` is a key without certificate; give --tls-certificate too", field="tls_key"
        )
    return None
