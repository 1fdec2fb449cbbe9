"""Child processes import nothing from the current folder, and parsers get no secrets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import klsa_search
from klsa_search.core.child_processes import WorkerPool, command_of, start_worker
from klsa_search.errors import KlsaError
from tests.support.hostile import hostile_folder, imported_from
from tests.support.waiting import PATIENCE

PACKAGE = Path(klsa_search.__file__).parent
ANALYSE = """
from klsa_search.analysis import Analyzer
from klsa_search.analysis.workers import AnalysisWorkers
from klsa_search.analysis.searched_text import AnalysedTexts
with AnalysisWorkers(Analyzer(), 1) as workers:
    workers.submit(AnalysedTexts(["a pump"])).result()
"""
PARSE = """
import sys
from pathlib import Path
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.files.sandbox import Sandbox
path = Path("note.rst")
path.write_text("a pump")
with Sandbox() as parser:
    assert [content.text for content in parser.read(format_of(path), path, None)] == ["a pump"]
"""


SECRETS = {
    "KLSA_EMBEDDER_KEY": "1",
    "AWS_SECRET_ACCESS_KEY": "2",
    "DATABASE_URL": "postgres://klsa:3@database/klsa",
    "MYSQL_PWD": "4",
    "GITHUB_PAT": "5",
    "SLACK_WEBHOOK": "https://hooks.test/6",
}
SHOW = """
import json, os
def serve():
    print(json.dumps(dict(os.environ)))
"""


@pytest.fixture
def hostile(tmp_path):
    return hostile_folder(tmp_path)


def test_a_command_imports_nothing_from_the_current_folder(hostile):
    ended = subprocess.run(
        command_of("klsa_search.cli.children", "--help"),
        cwd=hostile,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert imported_from(hostile) == []
    assert b"Traceback" not in ended.stderr


def test_python_itself_would_import_from_it(hostile):
    subprocess.run(
        [sys.executable, "-m", "klsa_search.cli.children", "--help"],
        cwd=hostile,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert imported_from(hostile) != []


@pytest.mark.parametrize("work", [ANALYSE, pytest.param(PARSE, marks=pytest.mark.slow)])
def test_a_worker_imports_nothing_from_the_current_folder(hostile, work):
    subprocess.run([sys.executable, "-P", "-c", work], cwd=hostile, check=True, timeout=PATIENCE)
    assert imported_from(hostile) == []


def test_a_worker_imports_modules_next_to_the_script(tmp_path):
    """Which needs no guard: the worker does not run it again."""
    (tmp_path / "beside.py").write_text(
        "import re\n"
        "def words(text):\n"
        "    return [(found[0], *found.span()) for found in re.finditer('p+', text)]\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "from klsa_search.analysis import Analyzer\n"
        "from klsa_search.analysis.tokenizers import trust\n"
        "from klsa_search.analysis.workers import AnalysisWorkers\n"
        "from klsa_search.analysis.searched_text import AnalysedTexts\n"
        "from klsa_search.core.config import AnalysisSettings\n"
        "import beside\n"
        "analyzer = Analyzer(AnalysisSettings(tokenizer=trust(beside.words)))\n"
        "with AnalysisWorkers(analyzer, 1) as workers:\n"
        "    print(list(workers.submit(AnalysedTexts(['a pump'])).result().terms))\n"
    )
    told = subprocess.check_output([sys.executable, script], cwd="/", text=True, timeout=PATIENCE)
    assert told == "['p']\n"


def test_a_worker_that_ends_is_reported_with_its_exit_code(tmp_path, monkeypatch):
    (tmp_path / "leaving.py").write_text(
        "import os, time\n"
        "from klsa_search.core.child_processes import answer_requests\n"
        "def leave(code):\n"
        "    os.closerange(3, 100)  # as at the end of any process, pipes first\n"
        "    time.sleep(0.3)\n"
        "    os._exit(code)\n"
        "def serve():\n"
        "    answer_requests(lambda state: leave)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with WorkerPool[int, None]("leaving", [None], "a worker") as pool:
        with pytest.raises(KlsaError, match=r"^the one of 7 ended early \(exit code 7\); see its"):
            pool.submit(7, "the one of 7").result()
        with pytest.raises(KlsaError, match=r"^a worker ended early \(exit code 7\)"):
            pool.submit(8).result()


def test_parsers_of_files_get_no_secrets(tmp_path, monkeypatch):
    (tmp_path / "showing.py").write_text(SHOW)
    monkeypatch.syspath_prepend(tmp_path)
    harmless = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "OPENBLAS_NUM_THREADS": "1"}
    for name, value in {**SECRETS, **harmless}.items():
        monkeypatch.setenv(name, value)
    for without_secrets in (False, True):
        with start_worker("showing", without_secrets=without_secrets) as worker:
            shown = json.loads(worker.communicate()[0])
        assert harmless.items() <= shown.items()
        assert (shown.keys() & SECRETS.keys()) == ({} if without_secrets else SECRETS).keys()
