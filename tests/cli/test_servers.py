"""The application of the environment, run by servers of others."""

import os
import socket
import subprocess
import sys

import httpx
import pytest

from klsa_search.indexing.build import build
from tests.support.waiting import wait_until

COMMANDS = {
    "uvicorn": ["uvicorn", "klsa_search.service:app", "--port"],
    "gunicorn": [
        *("gunicorn", "klsa_search.service:app", "--worker-class", "uvicorn_worker.UvicornWorker"),
        *("--workers", "2", "--bind"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("server", COMMANDS)
def test_any_server_runs_the_application(tmp_path, server):
    for module in {"uvicorn": (), "gunicorn": ("gunicorn", "uvicorn_worker")}[server]:
        pytest.importorskip(module, reason=f"{server} is not installed")
    document = {"id": "1", "title": "Wings", "text": "A wing lifts."}
    build([document], name="one", home=tmp_path / "home").close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", *COMMANDS[server], str(port)]
    if server == "gunicorn":
        command[-1] = f"127.0.0.1:{port}"
    settings = {"KLSA_HOME": str(tmp_path / "home"), "KLSA_ALLOW_NO_KEYS": "yes"}
    settings["KLSA_WRITABLE"] = "yes"
    url = f"http://127.0.0.1:{port}"

    def answers():
        try:
            return httpx.get(f"{url}/health/live").is_success
        except httpx.TransportError:
            return False

    with subprocess.Popen(command, env=os.environ | settings, cwd=tmp_path) as process:
        try:
            wait_until(answers)
            for number in range(2, 12):  # whichever process answers has the last write
                changed = {"title": "Tail", "text": "A tail steers."}
                path = f"{url}/indexes/one/documents/{number}"
                assert httpx.put(path, json=changed).is_success
                found = httpx.get(f"{url}/search", params={"q": "tail", "k": 20}).json()
                assert found["total"] == number - 1
        finally:
            process.terminate()
