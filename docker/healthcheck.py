"""Ask the service of this container for its health: exit status 0 if it answers 200, else 1."""

import http.client
import os
import ssl
import sys


def main() -> int:
    """Return the exit status; what is wrong goes to stderr, where `docker inspect` shows it."""
    port = os.environ.get("KLSA_PORT") or "8000"
    if os.environ.get("KLSA_TLS_CERTIFICATE"):  # of another name than this one
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            f"127.0.0.1:{port}", timeout=4, context=context
        )
    else:
        connection = http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=4)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as failure:
        sys.stderr.write(f"port {port} does not answer: {failure}\n")
        return 1
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        sys.stderr.write(f"port {port} answers {status}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
