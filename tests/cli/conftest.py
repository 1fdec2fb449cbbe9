"""Commands run in a temporary folder, as from a shell."""

import io
import json
import shutil
import sys
from dataclasses import dataclass

import pytest

from klsa_search import build
from klsa_search.cli.evaluate import klsa_eval
from klsa_search.cli.index import klsa_index
from klsa_search.cli.main import run
from klsa_search.cli.search import klsa_search

COMMANDS = {"klsa-eval": klsa_eval, "klsa-index": klsa_index, "klsa-search": klsa_search}
DOCUMENTS = [
    {"id": "heat", "title": "Heat", "text": "Engines overheat when the coolant leaks."},
    {"id": "cold", "title": "Cold", "text": "Coolant [thins] in the cold; engines stall."},
    {"id": "tyre", "title": "Tyres", "text": "Worn tyres slip on wet roads."},
    {"id": "road", "title": "Roads", "text": "Wet roads are slippery; tyres matter."},
]


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self):
        return True


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """A function that runs a command line, with nothing known of this machine's collections."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLSA_COLLECTIONS", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def call(program, *arguments):
        with pytest.raises(SystemExit) as left:
            run(COMMANDS[program], [str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(left.value.code, out, err)

    return call


def write_cars(folder):
    path = folder / "cars.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    return path


@pytest.fixture
def cars(tmp_path):
    """A JSONL file of four documents."""
    return write_cars(tmp_path)


@pytest.fixture(scope="session")
def cars_home(tmp_path_factory):
    """A folder with an index of them, which tests copy."""
    home = tmp_path_factory.mktemp("cars")
    build(write_cars(home), name="cars", home=home / "index").close()
    return home / "index"


@pytest.fixture
def built(shell, cars, cars_home, tmp_path):
    """Return `shell` in a folder with the index `cars` of another file of these documents."""
    shutil.copytree(cars_home, tmp_path / "index", dirs_exist_ok=True)
    return shell


@pytest.fixture
def beir(tmp_path):
    """The same as a BEIR folder, with two queries and their judgements."""
    folder = tmp_path / "cars"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": d["id"], "title": d["title"], "text": d["text"]} for d in DOCUMENTS]
    asked = [{"_id": "1", "text": "overheat"}, {"_id": "2", "text": "no such words here"}]
    for name, lines in (("corpus", rows), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    judged = "query-id\tcorpus-id\tscore\n1\theat\t1\n1\ttyre\t0\n2\troad\t1\n"
    (folder / "qrels" / "test.tsv").write_text(judged)
    return folder
