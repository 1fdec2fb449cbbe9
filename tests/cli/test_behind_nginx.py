"""The service under a prefix of a real nginx, as docs/guides/run-the-service.md has it."""

import shutil
import socket
import subprocess

import httpx
import pytest

from klsa_search.client import Client
from klsa_search.indexing.build import build
from tests.support.waiting import wait_until

from .test_serve import serving

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]

CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /find/ {{
      proxy_pass {address}/;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }}
  }}
}}
"""


@pytest.fixture
def proxied(tmp_path):
    """Return the address of a service with one index behind nginx."""
    home = tmp_path / "home"
    build([{"id": "1", "title": "Wings", "text": "A wing lifts."}], name="one", home=home).close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(home, "--root-path", "/find") as (_, address):
        file = tmp_path / "nginx.conf"
        file.write_text(CONFIGURATION.format(folder=tmp_path, port=port, address=address))
        command = ["nginx", "-c", str(file), "-p", str(tmp_path), "-e", str(tmp_path / "error.log")]
        with subprocess.Popen(command) as nginx:
            url = f"http://127.0.0.1:{port}/find"

            def answers():
                try:
                    return httpx.get(f"{url}/health/live").is_success
                except httpx.TransportError:
                    return False

            try:
                wait_until(answers)
                yield url
            finally:
                nginx.terminate()


def test_page_documentation_and_clients_work_under_a_prefix(proxied):
    with httpx.Client(base_url=proxied) as http:
        page = http.get("/", headers={"Accept": "text/html"})
        assert 'src="page/' in page.text
        assert http.get("/page/main.js").is_success
        assert "/find/openapi.json" in http.get("/docs").text
        assert http.get("/openapi.json").json()["servers"] == [{"url": "/find"}]
    with Client(proxied) as client:
        assert [hit.id for hit in client.index("one").search("wing")] == ["1"]
        client.index("one").add([{"id": "2", "title": "Tail", "text": "A tail steers."}])
        assert [hit.id for hit in client.index("one").search("tail")] == ["2"]
