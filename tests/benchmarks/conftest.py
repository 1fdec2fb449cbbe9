"""A corpus on which every benchmark runs in a second or two."""

import gzip
import json

import numpy as np
import pytest

from klsa_search import build
from tests.support.worlds import topic_documents

TOPICS = 8


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Folder with corpus.jsonl of 320 texts, queries.tsv of 4, and reuters21578 of the same."""
    folder = tmp_path_factory.mktemp("benchmarks")
    rng = np.random.default_rng(0)
    texts = [
        f"{text} {' '.join(rng.choice([f'w{n}' for n in range(200)], 6))}"
        for text in topic_documents(TOPICS, 40)
    ]
    with (folder / "corpus.jsonl").open("w") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "title": "", "text": text}) + "\n")
    (folder / "queries.tsv").write_text("".join(f"{n}\t{'abcd'[n]}1 x1\n" for n in range(4)))
    stories = [
        f'<REUTERS TOPICS="YES" LEWISSPLIT="{"TRAIN" if n % 2 else "TEST"}" NEWID="{n}">'
        f"<TOPICS><D>{chr(ord('a') + n // 40)}</D></TOPICS>"
        f"<TEXT><TITLE>story {n} of {text[:5]}</TITLE><BODY>{text}</BODY></TEXT></REUTERS>"
        for n, text in enumerate(texts)
    ]
    (folder / "reuters21578").mkdir()
    with gzip.open(folder / "reuters21578" / "reut2-000.sgm.gz", "wt", encoding="latin-1") as file:
        file.write("\n".join(stories))
    return folder


@pytest.fixture(scope="session")
def built(world):
    """Folder of an index of the corpus, with D kept cut as it is at the sizes that are measured."""
    index = build(
        world / "corpus.jsonl",
        name="corpus",
        home=world / "index",
        dimensions=20,
    )
    index.close()
    return world / "index" / "corpus"
