import asyncio
import json
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from uvicorn import Config
from uvicorn.supervisors.multiprocess import Process

from klsa_search.cli.index import klsa_index
from klsa_search.cli.main import run
from klsa_search.cli.serve import serve
from klsa_search.cli.serving import _Workers, is_loopback, listen
from klsa_search.indexing.build import build
from klsa_search.service.keys import add_key
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.slow

PEM = Path(__file__).with_name("localhost.pem")
DOCUMENTS = [
    {"id": "1", "title": "Files", "text": "Read files in a coroutine, line by line."},
    {"id": "2", "title": "Sockets", "text": "Read from a socket."},
]


@pytest.fixture(autouse=True)
def _leave_the_process_as_it_is(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    before = signal.getsignal(signal.SIGTERM), resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    signal.signal(signal.SIGTERM, before[0])
    resource.setrlimit(resource.RLIMIT_NOFILE, before[1])


@pytest.fixture
def home(tmp_path):
    build(DOCUMENTS, name="files", home=tmp_path).close()
    return tmp_path


def leave(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        run(serve, [str(argument) for argument in arguments])
    return left.value.code, capsys.readouterr()


SERVE = "from klsa_search.cli.serve import main; main()"
STUCK = f"""
import os, threading
from klsa_search.search.index import Index
from klsa_search.service.server import configured
def search(*_, **__):
    os.write(1, b"at work\\n")  # in one piece, whatever other threads write
    threading.Event().wait({PATIENCE})
Index.search = search
configured.__kwdefaults__["grace"] = float({{grace!r}})
{SERVE}
"""
"""A service whose searches never end."""


@contextmanager
def serving(home, *options, program=SERVE, limit=None, scheme="http"):
    """A service in a process of its own, and its address."""
    command = [sys.executable, "-c", program, "--home", str(home), "--port", "0", *options]
    set_limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit))
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=set_limit if limit else None,
    ) as server:
        try:
            first = server.stdout.readline()
            found = re.fullmatch(rf"Serving .* at ({scheme}://127.0.0.1:\d+) \(.*Ctrl-C\)\n", first)
            yield server, found[1]
        finally:
            server.kill()


def ended(server):
    """Exit code and stderr."""
    _, told = server.communicate(timeout=PATIENCE)  # reads: a full pipe would keep it from ending
    return server.returncode, told


def assert_ended_well(server, home):
    assert ended(server) == (0, f"Opening 1 index in {home}\n")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_it_is_stopped(home, kind):
    with serving(home) as (server, address):
        server.stdout.readline()
        tried = re.fullmatch(r"Try: +curl '(.+)'\n", server.stdout.readline())[1]
        assert tried.startswith(address)
        with urlopen(tried.replace("your+words", "coroutine"), timeout=PATIENCE) as response:
            answer = json.load(response)
        assert answer["hits"][0]["id"] == "1"
        build(DOCUMENTS[1:], name="files", home=home).close()
        wait_until(lambda: generation_at(address) == "000002")
        server.send_signal(kind)
        assert_ended_well(server, home)


def health_of(address):
    with urlopen(f"{address}/health", timeout=PATIENCE) as response:
        return json.load(response)


def generation_at(address):
    return health_of(address)["indexes"][0]["generation"]


def asking(address):
    """A connection that has asked for a search, of those that are done in threads."""
    host, port = address.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), timeout=PATIENCE)
    client.sendall(b"GET /search?q=read&max_facet_values=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


def wait_until_at_work(server):
    assert any(line == "at work\n" for line in server.stdout)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_is_stopped_though_searches_do_not_end(home, kind):
    with serving(home, program=STUCK.format(grace=0.1)) as (server, address):
        clients = [asking(address) for _ in range(12)]
        wait_until_at_work(server)
        assert status_of(f"{address}/health") == 200
        server.send_signal(kind)
        for client in clients:
            with client, suppress(ConnectionResetError):
                answer = client.makefile("rb").read()
                assert answer.startswith((b"HTTP/1.1 500 ", b"HTTP/1.1 503 "))  # or refused
        code, told = ended(server)
        assert code == 0
        assert "timeout graceful shutdown exceeded" in told


def test_ctrl_c_ends_at_once_what_is_being_stopped(home):
    with serving(home, program=STUCK.format(grace=PATIENCE)) as (server, address), asking(address):
        wait_until_at_work(server)
        server.send_signal(signal.SIGTERM)
        wait_until(lambda: status_of(f"{address}/health") is None)
        assert server.poll() is None
        server.send_signal(signal.SIGINT)
        assert ended(server)[0] == 0


def status_of(url):
    try:
        with urlopen(url, timeout=PATIENCE) as response:
            return response.status
    except HTTPError as error:
        with error:
            return error.code
    except (URLError, ConnectionError):
        return None


def test_only_names_of_the_machine_are_answered(home):
    def ask(address, host):
        return status_of(Request(f"{address}/health", headers={"Host": host}))

    with serving(home, "--allowed-host", "search.example") as (_, address):
        assert ask(address, "localhost") == 200
        assert ask(address, socket.gethostname()) == 200
        assert ask(address, "search.example") == 200
        assert ask(address, "evil.example") == 421


def test_names_come_from_the_environment_too(home, monkeypatch):
    monkeypatch.setenv("KLSA_ALLOWED_HOSTS", "one.example two.example")
    with serving(home) as (_, address):
        for host, status in {"one.example": 200, "two.example": 200, "evil.example": 421}.items():
            assert status_of(Request(f"{address}/health", headers={"Host": host})) == status


def test_settings_come_from_a_file(home, tmp_path):
    config = tmp_path / "klsa.toml"
    config.write_text('allowed_hosts = ["one.example"]\nwritable = true\n')
    with serving(home, "--config", str(config)) as (server, address):
        assert [server.stdout.readline() for _ in range(3)][-1].startswith("Writes: allowed")
        assert status_of(Request(f"{address}/health", headers={"Host": "one.example"})) == 200


def test_every_command_reads_the_home_from_the_environment(capsys, home, monkeypatch):
    monkeypatch.setenv("KLSA_HOME", str(home))
    with pytest.raises(SystemExit) as left:
        run(klsa_index, ["list"])
    assert left.value.code == 0
    assert "files" in capsys.readouterr().out


def test_small_answers_are_sent_at_once():
    """What asyncio accepts from the listener has TCP_NODELAY."""
    accepted = []

    class Accepting(asyncio.Protocol):
        def connection_made(self, transport):
            connection = transport.get_extra_info("socket")
            accepted.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def accept():
        with listen("127.0.0.1", 0) as listener:
            server = await asyncio.get_running_loop().create_server(Accepting, sock=listener)
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert await reader.read() == b""
            writer.close()
            server.close()

    asyncio.run(accept())
    assert accepted != [0]
    assert len(accepted) == 1


def test_an_index_is_created_over_http(tmp_path):
    with serving(tmp_path / "none") as (server, address):
        server.stdout.readline()
        assert "klsa-index build" in server.stdout.readline()
        command = server.stdout.readline()
        body = re.search(r"-d '(.+)'", command)[1].encode()
        assert f" {address}/indexes " in command
        request = Request(f"{address}/indexes", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=PATIENCE) as response:
            assert json.load(response)["documents"] == 0
        documents = json.dumps(DOCUMENTS).encode()
        request = Request(
            f"{address}/indexes/NAME/documents", documents, {"Content-Type": "application/json"}
        )
        urlopen(request, timeout=PATIENCE).close()
        wait_until(lambda: generation_at(address) == "000002")  # the first refit
        with urlopen(f"{address}/search?q=coroutine", timeout=PATIENCE) as response:
            assert json.load(response)["hits"][0]["id"] == "1"


def test_a_damaged_index_is_reported(capsys, home):
    (home / "files" / "CURRENT").write_text("000009\n")
    code, printed = leave(capsys, "--home", home)
    assert code == 1
    _, warning, error = printed.err.splitlines()
    assert warning.startswith("warning: index `files` cannot be served: ")
    assert error.startswith(f"error: no index in `{home}` can be served")


def test_port_in_use(capsys, home):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, printed = leave(capsys, "--home", home, "--port", port)
    assert code == 1
    opening, error = printed.err.splitlines()
    assert opening == f"Opening 1 index in {home}"
    assert error.startswith("error: cannot listen on `127.0.0.1`")
    assert f"port {port}" in error
    assert "--port" in error
    assert printed.out == ""


def test_address_of_another_machine(capsys, home):
    code, printed = leave(capsys, "--home", home, "--host", "192.0.2.1", "--port", 0)
    assert code == 1
    assert "not an address of this machine" in printed.err


def test_a_home_that_is_a_file_is_wrong_usage(capsys, tmp_path):
    (tmp_path / "file").touch()
    assert leave(capsys, "--home", tmp_path / "file")[0] == 2


@pytest.mark.parametrize(
    "wrong", [["--port", "70000"], ["--port", "x"], ["--nope"], ["--host", "no host at all"]]
)
def test_wrong_usage(capsys, home, wrong):
    code, printed = leave(capsys, "--home", home, *wrong)
    assert code == 2
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 200),
        (("--read-only",), 403),
        (("--allowed-host", "search.example.org"), 403),
        (("--allowed-host", "search.example.org", "--writable"), 200),
    ],
)
def test_writes_are_accepted_on_this_machine_or_with_an_option(home, options, status):
    with serving(home, *options) as (server, address):
        told = [server.stdout.readline() for _ in range(3)][-1]
        assert told.startswith("Writes: allowed" if status == 200 else "Writes: off")
        assert written_to(address) == status
        server.send_signal(signal.SIGTERM)
        assert_ended_well(server, home)


def written_to(address, document="3"):
    body = json.dumps({"text": "Streams of floats."}).encode()
    request = Request(f"{address}/indexes/files/documents/{document}", body, method="PUT")
    request.add_header("Content-Type", "application/json")
    return status_of(request)


def test_an_index_that_drifted_too_far_is_refitted_in_the_background(home):
    with serving(home, "--refit-threshold", "0.6") as (server, address):
        assert [written_to(address, str(n)) for n in range(3, 6)] == [200] * 3
        wait_until(lambda: generation_at(address) == "000002")
        assert written_to(address, "6") == 200
        health = health_of(address)
        assert health["refits"]["files"]["error"] is None
        assert health["indexes"][0]["documents"] == 6
        server.send_signal(signal.SIGTERM)
        assert_ended_well(server, home)


def test_refits_can_be_turned_off_and_interrupted(home):
    with serving(home, "--refit-threshold", "0") as (server, address):
        assert [written_to(address, str(n)) for n in range(3, 9)] == [200] * 6
        assert health_of(address)["refits"] == {}
        server.send_signal(signal.SIGTERM)
        assert_ended_well(server, home)
    with serving(home) as (server, address):  # one that finds at its start that it is time
        wait_until(lambda: health_of(address)["refits"])
        server.send_signal(signal.SIGTERM)
        assert_ended_well(server, home)


def test_others_are_not_let_in_without_keys(capsys, home):
    code, printed = leave(capsys, "--home", home, "--host", "0.0.0.0", "--port", 0)
    assert code == 2
    error = printed.err.splitlines()[-1]
    assert error.startswith(f"error: refusing to serve `{home}` without API keys")
    assert f"`klsa-keys add NAME --home {home}`" in error
    assert "--allow-no-keys" in error
    assert printed.out == ""


@pytest.mark.parametrize("keyed", [True, False])
def test_other_machines_need_keys_or_an_option(home, keyed):
    token = add_key(home / ".keys.json", "web", ["search"]) if keyed else ""
    options = () if keyed else ("--allow-no-keys",)
    with serving(home, "--host", "0.0.0.0", *options) as (server, address):
        told = "".join(server.stdout.readline() for _ in range(4))
        assert f"\nAuthentication: {'on' if keyed else 'off'}" in told
        search = f"{address}/search?q=read"
        assert status_of(search) == (401 if keyed else 200)
        assert status_of(f"{address}/health") == 200
        with_key = Request(search, headers={"Authorization": f"Bearer {token}"})
        assert status_of(with_key) == 200
        write = Request(f"{address}/indexes/files/documents/1", method="DELETE")
        assert status_of(write) == (401 if keyed else 403)


def test_tls(home):
    with serving(home, "--tls-certificate", str(PEM), scheme="https") as (server, address):
        trusting = ssl.create_default_context(cafile=PEM)
        with urlopen(f"{address}/search?q=coroutine", timeout=PATIENCE, context=trusting) as answer:
            assert json.load(answer)["hits"][0]["id"] == "1"
        assert status_of(address.replace("https", "http")) is None
        server.send_signal(signal.SIGTERM)
        assert_ended_well(server, home)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--tls-key", PEM), 2, "key without certificate"),
        (("--tls-certificate", Path(__file__)), 2, "cannot be used for TLS"),
        (("--tls-certificate", "none.pem"), 1, "none.pem: No such file or directory"),
        (("--tls-certificate", PEM, "--tls-key", "none.pem"), 1, "none.pem: No such file"),
        (("--cors-origin", "example.org"), 2, "cors_origins"),
        (("--log-format", "xml"), 2, "'xml' is not one of"),
    ],
)
def test_unusable_settings_are_reported_before_serving(capsys, home, options, code, told):
    found, printed = leave(capsys, "--home", home, "--port", 0, *options)
    assert (found, printed.out) == (code, "")
    assert told in printed.err


def test_its_log_can_be_lines_of_json(home):
    build(DOCUMENTS, name="bad", home=home).close()
    (home / "bad" / "CURRENT").write_text("000009\n")
    with serving(home, "--log-format", "json") as (server, address):
        status_of(f"{address}/search?q=read&index=files")
        server.send_signal(signal.SIGTERM)
        code, told = ended(server)
    assert code == 0
    opening, warning, *_, request = map(json.loads, told.splitlines())
    assert opening["message"].startswith("Opening 2 indexes in ")
    assert warning["message"].startswith("warning: index `bad` cannot be served: ")
    assert (request["path"], request["status"], request["index"]) == ("/search", 200, "files")


@pytest.mark.parametrize(
    ("address", "alone"),
    [("127.0.0.1", True), ("127.3.4.5", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_addresses_are_recognised(address, alone):
    class Listener:
        def getsockname(self):
            return address, 8000

    assert is_loopback(Listener()) is alone


def test_the_end_of_any_worker_is_noticed_at_once(monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    workers = _Workers(Config("none:app", workers=2), [])
    replacement = Process(workers.config, [])
    workers.processes = [replacement]
    workers.should_exit.set()  # no worker is asked
    workers.keep_subprocess_alive()
    assert replacement.child_conn.closed
    replacement.parent_conn.close()
