"""Natural questions to the docstrings of Python: where BM25 finds the answer, where the default.

    python -m studies.front_page [--json FILE]

questions.tsv has two lists of sixty, each question with the docstrings that answer it. They were
written down from what the functions do, without reading the docstrings and before any question of
the list was asked; only that the names exist was looked up. `newcomer` is in the words of somebody
who does not program: folder, drive, spreadsheet. `programmer`, in the words of somebody who does,
in another language, was written when the first list had been asked: words that no docstring uses
cannot be learnt from docstrings. The very first question was known to be answered by neither.

A question counts as answered at the best rank that one of its docstrings has. Python moves what it
has from version to version, so some stand there under two names; one that is not there counts for
nothing. Whose docstrings some version does not have at all are asked without an answer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from klsa_search import Index, build
from studies import command_parser

QUESTIONS: Final = Path(__file__).with_name("questions.tsv")
DEPTH: Final = 1000
RANKERS: Final = ("bm25", "klsa")


class Asked(NamedTuple):
    """A question of a list, and the ids of the documents that answer it."""

    list: str
    text: str
    answers: tuple[str, ...]


class Answered(NamedTuple):
    """The best rank of an answer by each ranker, None beyond `DEPTH`; `id` is that of klsa's."""

    list: str
    question: str
    id: str
    ranks: Mapping[str, int | None]

    def better(self) -> int:
        """1 where the default ranks it higher, -1 where BM25 does, 0 where neither."""
        bm25, klsa = (self.ranks[name] or DEPTH + 1 for name in RANKERS)
        return (klsa < bm25) - (bm25 < klsa)


def read_questions(path: Path = QUESTIONS) -> list[Asked]:
    lines = path.read_text(encoding="utf-8").splitlines()
    parted = (line.split("\t") for line in lines)
    return [Asked(name, text, tuple(ids.split())) for name, text, ids in parted]


def answer(index: Index, asked: Asked) -> Answered:
    ranks: dict[str, int | None] = {}
    best = asked.answers[0]
    for ranker in RANKERS:
        positions, _ = index.rank(asked.text, DEPTH, ranker=ranker)
        found = index.ids(positions)
        places = {found.index(each) + 1: each for each in asked.answers if each in found}
        ranks[ranker] = min(places, default=None)
        best = places[min(places)] if places else best
    return Answered(asked.list, asked.text, best, ranks)


def within(answered: Sequence[Answered], ranker: str, depth: int) -> int:
    """How many are answered among the first so many."""
    ranks = (one.ranks[ranker] for one in answered)
    return sum(rank is not None and rank <= depth for rank in ranks)


def reciprocal(answered: Sequence[Answered], ranker: str) -> float:
    """Mean of 1 / rank, 0 where there is none."""
    ranks = (one.ranks[ranker] for one in answered)
    return sum(1 / rank for rank in ranks if rank) / len(answered)


def show(answered: Sequence[Answered]) -> None:
    for name in dict.fromkeys(one.list for one in answered):
        print(f"\n{name}\n")
        _show_list([one for one in answered if one.list == name])


def _show_list(answered: Sequence[Answered]) -> None:
    print("| question | answer | BM25 | default |\n|---|---|---|---|")
    for one in answered:
        bm25, klsa = (one.ranks[name] or f"> {DEPTH}" for name in RANKERS)
        print(f"| {one.question} | `{one.id}` | {bm25} | {klsa} |")
    print("\n| of them | BM25 | default |\n|---|---|---|")
    for depth in (1, 3, 10, 100):
        counts = " | ".join(str(within(answered, name, depth)) for name in RANKERS)
        print(f"| among the first {depth} | {counts} |")
    means = " | ".join(f"{reciprocal(answered, name):.3f}" for name in RANKERS)
    print(f"| mean reciprocal rank | {means} |")
    signs = [one.better() for one in answered]
    print(
        f"\n{len(signs)} questions: the default ranks the answer higher for {signs.count(1)}, "
        f"BM25 for {signs.count(-1)}, both alike for {signs.count(0)}."
    )


def main() -> None:
    parser = command_parser("studies.front_page", __doc__)
    parser.add_argument("--json", type=Path, help="also write the ranks to this file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as home,
        closing(build("python-docs", name="python-docs", home=home)) as index,
    ):
        answered = [answer(index, asked) for asked in read_questions()]
    show(answered)
    if options.json:
        found = {
            one.question: {"list": one.list, "answer": one.id, **one.ranks} for one in answered
        }
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
