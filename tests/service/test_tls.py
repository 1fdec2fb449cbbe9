"""A certificate is replaced while a server uses it."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from klsa_search.errors import SettingsError
from klsa_search.service.tls import Tls

CLI = Path(__file__).parents[1] / "cli"
PAIRS = [CLI / "localhost.pem", CLI / "renewed.pem"]  # of different types of key
NAMES = [None, "localhost"]


def split(path):
    """Return the key and the certificate of a file."""
    key, certificate = (
        text[text.index(f"-----BEGIN {kind}") : text.index(end) + len(end)] + "\n"
        for text in [path.read_text()]
        for kind, end in (
            ("PRIVATE KEY", "-----END PRIVATE KEY-----"),
            ("CERTIFICATE", "-----END CERTIFICATE-----"),
        )
    )
    return key, certificate


def presented(server, name):
    """Return the certificate that a client gets from the context of a server."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(down, up, server_hostname=name),
        server.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ssl.DER_cert_to_PEM_cert(ends[0].getpeercert(binary_form=True))


@pytest.mark.parametrize("name", NAMES)
def test_new_connections_get_the_renewed_certificate(tmp_path, name):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"

    def write(pair):
        key.write_text(pair[0])
        certificate.write_text(pair[1])

    one, other = map(split, PAIRS)
    write(one)
    tls = Tls(certificate, key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    tls.install(server)
    assert presented(server, name) == one[1]
    for pair in (other, one):  # back to a type of key that was used before
        write(pair)
        tls.reload()
        assert presented(server, name) == pair[1]
    write((one[0], other[1]))
    with pytest.raises(SettingsError, match="cannot be used for TLS"):
        tls.reload()
    assert presented(server, name) == one[1]
    key.unlink()
    with pytest.raises(FileNotFoundError, match=r"key\.pem"):
        tls.reload()
    assert presented(server, name) == one[1]
