import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.conftest import ROOT
from tests.support.processes import run
from tests.support.waiting import PATIENCE

HEALTHCHECK = ROOT / "docker" / "healthcheck.py"


def check(port):
    return run(
        sys.executable,
        HEALTHCHECK,
        env={**os.environ, "KLSA_PORT": str(port), "http_proxy": "http://127.0.0.1:9"},
    )


@pytest.mark.parametrize(("status", "exit_status"), [(200, 0), (404, 1), (503, 1)])
def test_status_decides(status, exit_status):
    class Service(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        result = check(server.server_port)
        server.shutdown()
        thread.join(PATIENCE)
    assert result.returncode == exit_status
    assert (str(status) in result.stderr) == (exit_status != 0)


def test_without_a_service_the_check_fails(refusing_port):
    result = check(refusing_port)
    assert result.returncode == 1
    assert "does not answer" in result.stderr
