"""Tasks of Reuters-21578: topics, titles of the same topic, titles without their story.

The split is ModApte's: 9,603 stories to train, 3,299 to test.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from klsa_search.collection import Document
from klsa_search.collection.model import Judgement, Topic
from studies.datasets import read_reuters, reuters_folder
from studies.effectiveness.derived_tasks import title_to_text
from studies.effectiveness.measuring import Task

# Codes that are no words; the others are searched for as they are written.
NAMES = {
    "acq": "mergers and acquisitions",
    "bop": "balance of payments",
    "cpi": "consumer price index",
    "cpu": "capacity utilisation",
    "dlr": "dollar",
    "earn": "company earnings and earnings forecasts",
    "fuel": "fuel oil",
    "gas": "gasoline",
    "gnp": "gross national product",
    "interest": "interest rates",
    "ipi": "industrial production index",
    "jobs": "jobs and unemployment",
    "lei": "leading economic indicators",
    "money-fx": "foreign exchange",
    "nat-gas": "natural gas",
    "pet-chem": "petrochemicals",
    "reserves": "foreign exchange reserves",
    "ship": "shipping",
    "trade": "foreign trade",
    "veg-oil": "vegetable oil",
    "wpi": "wholesale price index",
}
FEWEST = 5
"""Stories a topic needs to become a query."""


class Labelled(NamedTuple):
    document: Document
    part: str
    topics: tuple[str, ...]


def tasks() -> dict[str, Callable[[], Task]]:
    """Tasks by name; SystemExit, with the reason, where Reuters is not found."""
    folder = reuters_folder()
    return {
        "reuters-topics": lambda: topics_of(labelled(folder)),
        "reuters-titles": lambda: _titles(labelled(folder)),
        "reuters-known": lambda: title_to_text(
            "reuters-known", [story.document for story in labelled(folder)]
        ),
    }


def labelled(folder: Path) -> list[Labelled]:
    """The 12,902 stories of the ModApte split, in the order of the files."""
    return [
        Labelled(Document(id=s.id, title=s.title, text=s.text), s.part, s.topics)
        for s in read_reuters(folder)
        if s.part is not None
    ]


def topics_of(labelled: list[Labelled]) -> Task:
    """The name of a topic → its stories."""
    held: dict[str, list[str]] = {}
    for story in labelled:
        for topic in story.topics:
            held.setdefault(topic, []).append(story.document.id)
    kept = {topic: ids for topic, ids in sorted(held.items()) if len(ids) >= FEWEST}
    return Task(
        "reuters-topics",
        [story.document for story in labelled],
        [Topic(id=t, text=NAMES.get(t, t.replace("-", " "))) for t in kept],
        [
            Judgement(query_id=topic, document_id=document, grade=1, gain=1)
            for topic, ids in kept.items()
            for document in ids
        ],
    )


def _titles(labelled: list[Labelled]) -> Task:
    """Titles of 200 test stories → the training stories with just the same topics, 3 to 300."""
    same: dict[tuple[str, ...], list[str]] = {}
    for story in labelled:
        if story.part == "train" and story.topics:
            same.setdefault(story.topics, []).append(story.document.id)
    held_out = [
        story
        for story in labelled
        if story.part == "test"
        and 3 <= len(same.get(story.topics, ())) <= 300
        and len(story.document.title.split()) >= 3
    ]
    chosen = np.sort(np.random.default_rng(0).choice(len(held_out), 200, replace=False)).tolist()
    return Task(
        "reuters-titles",
        [story.document for story in labelled if story.part == "train"],
        [Topic(id=held_out[i].document.id, text=held_out[i].document.title) for i in chosen],
        [
            Judgement(query_id=held_out[i].document.id, document_id=document, grade=1, gain=1)
            for i in chosen
            for document in same[held_out[i].topics]
        ],
    )
