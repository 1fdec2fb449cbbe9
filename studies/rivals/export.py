"""Write documents and judged queries for other systems: title and text, as one string.

    python -m studies.rivals.export OUT [--data DIR]

Makes OUT/<target>/documents/documents.jsonl, lines of `id` and `contents`, and
OUT/<target>/topics.tsv, for cran, cisi, cacm and med.
"""

from __future__ import annotations

import json
from pathlib import Path

from klsa_search.collection import open_collection
from studies import command_parser
from studies.datasets import collections_home

TARGETS = ("cran", "cisi", "cacm", "med")


def export(target: str, data: Path, out: Path) -> None:
    collection = open_collection(target, data=[data])
    folder = out / target
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    with (folder / "documents" / "documents.jsonl").open("w", encoding="utf-8") as file:
        for document in collection.documents():
            contents = f"{document.title}\n{document.text}".strip()
            file.write(json.dumps({"id": document.id, "contents": contents}) + "\n")
    judged = {judgement.query_id for judgement in collection.judgements()}
    with (folder / "topics.tsv").open("w", encoding="utf-8") as file:
        for query in collection.queries():
            if query.id in judged:
                file.write(f"{query.id}\t{' '.join(query.text.split())}\n")


def main() -> None:
    parser = command_parser("studies.rivals.export", __doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--data", type=Path, default=collections_home())
    options = parser.parse_args()
    for target in TARGETS:
        export(target, options.data, options.out)


if __name__ == "__main__":
    main()
