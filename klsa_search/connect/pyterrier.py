"""Indexes in PyTerrier pipelines and experiments (`klsa-search[pyterrier]`); no Java is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from klsa_search.collection.reading_options import OnError
from klsa_search.core.config import IndexSettings
from klsa_search.core.installation import require
from klsa_search.core.parameters import SearchParameters
from klsa_search.core.progress import Progress
from klsa_search.errors import CollectionError
from klsa_search.indexing.build import build
from klsa_search.search.index import Index, open_index
from klsa_search.search.parts.reading import ids_of
from klsa_search.storage.directories import is_index

try:
    import pandas as pd
    import pyterrier as pt
except ModuleNotFoundError:
    require("pyterrier")
    raise


class BuildOptions(IndexSettings, total=False):
    """Keyword arguments of `klsa_search.build`, except source and place."""

    preset: str
    on_error: OnError
    progress: Progress | bool | None
    memory: str | int | None


class KlsaRetriever(pt.Transformer):
    """Q → R: the best documents of an index for each query.

    index        open `Index`; each frame sees its current state
    num_results  maximum number of results of each query
    threads      number of threads for a frame
    parameters   parameters of `Index.rank`: `ranker`, `alpha`, `z`, `operators`, ...

    QueryError for invalid parameters.
    """

    def __init__(
        self,
        index: Index,
        *,
        num_results: int = 1000,
        threads: int = 1,
        **parameters: Unpack[SearchParameters],
    ) -> None:
        super().__init__()
        self.index = index
        self.num_results = num_results
        self.threads = threads
        self.parameters: SearchParameters = parameters
        self._ranker = self.parameters.get("ranker", index.settings.ranker)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add docno, score and rank (from 0); other columns of the query are kept."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        snapshot = self.index.snapshot()
        rankings = snapshot.rank_many(
            inp["query"], self.num_results, threads=self.threads, **self.parameters
        )
        counts = [len(doc_ids) for doc_ids, _ in rankings]
        repeated = inp.iloc[np.repeat(np.arange(len(inp)), counts)].reset_index(drop=True)
        # The empty arrays are for a frame without queries.
        doc_ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in rankings)])
        scores = np.concatenate([np.empty(0), *(values for _, values in rankings)])
        ranks = np.concatenate([np.empty(0, np.int64), *map(np.arange, counts)])
        return repeated.assign(
            docno=ids_of(snapshot.live_doc_ids(), snapshot.ids())(doc_ids), score=scores, rank=ranks
        )

    def fuse_rank_cutoff(self, k: int) -> KlsaRetriever:
        """Return a retriever with at most k results, for `retriever % k`."""
        if k >= self.num_results:
            return self
        return KlsaRetriever(self.index, num_results=k, threads=self.threads, **self.parameters)

    def schematic(self, *, input_columns: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return the label in diagrams of pipelines; without it, PyTerrier uses the network."""
        return {"label": self._ranker, "help_url": None}

    def __repr__(self) -> str:
        """Return index and ranker, the name in experiments."""
        return f"{self.index.name} {self._ranker}"


class KlsaTexts(pt.Transformer):
    """D → D: adds fields of the documents, as rerankers need them.

    index   open `Index`
    fields  "title", "text", or names of metadata fields

    DocumentNotFound.
    """

    def __init__(self, index: Index, fields: Sequence[str] = ("text",)) -> None:
        super().__init__()
        self.index = index
        self.fields = [fields] if isinstance(fields, str) else list(fields)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add one column per field; None if a document does not have it."""
        pt.validate.columns(inp, includes=["docno"])
        snapshot = self.index.snapshot()
        documents = snapshot.documents_at(snapshot.doc_ids(inp["docno"]))
        columns = {
            field: [
                getattr(document, field)
                if field in ("title", "text")
                else document.metadata.get(field)
                for document in documents
            ]
            for field in self.fields
        }
        return inp.assign(
            **{name: pd.Series(values, inp.index, object) for name, values in columns.items()}
        )

    def schematic(self, *, input_columns: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return the label in pictures of pipelines. See `KlsaRetriever.schematic`."""
        return {"label": "texts", "help_url": None}


class KlsaIndexer(pt.Indexer):
    """Builds an index of a corpus at HOME/NAME; an existing index is replaced.

    text_attrs  fields whose texts are joined into the text of a document. `title` is its title,
                unless it is one of them; other fields are metadata
    settings    other arguments of `klsa_search.build`: `k1`, `language`, `memory`, ...
    """

    def __init__(
        self,
        path: str | Path,
        *,
        text_attrs: Sequence[str] = ("text",),
        **settings: Unpack[BuildOptions],
    ) -> None:
        super().__init__()
        self.path = Path(path).absolute()
        self.text_attrs = [text_attrs] if isinstance(text_attrs, str) else list(text_attrs)
        self.settings = settings

    def index(self, iter: Iterable[Mapping[str, Any]], **_: Any) -> KlsaIndex:  # noqa: A002 - PyTerrier's name
        """Build the index from mappings with `docno`. Errors are those of `klsa_search.build`."""
        home, name = self.path.parent, self.path.name
        build(self._records(iter), name=name, home=home, replace=True, **self.settings).close()
        return KlsaIndex(self.path)

    def index_inputs(self) -> list[list[str]]:
        """Return the fields that a corpus must have."""
        return [["docno", *self.text_attrs]]

    def _records(self, corpus: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, record in enumerate(corpus, start=1):
            rest = dict(record)
            try:
                id_, texts = rest.pop("docno"), [rest.pop(name) for name in self.text_attrs]
            except KeyError as missing:
                raise CollectionError(
                    f"document {number} has no {missing}; name its text fields with text_attrs"
                ) from None
            yield {**rest, "_id": id_, "text": "\n".join(text for text in texts if text)}


class KlsaIndex(pt.Artifact, pt.Indexer):
    """Index on disk as an artifact, at HOME/NAME; opened at its first use.

    `pt.Artifact.load(path)` returns one for the folder of any index.
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "klsa"

    def __init__(self, path: str | Path) -> None:
        super().__init__(Path(path).absolute())
        self._index: Index | None = None

    def opened(self) -> Index:
        """Return the opened index; IndexNotFound if nothing has been built yet."""
        if self._index is None:
            self._index = open_index(self.path)
        return self._index

    def built(self) -> bool:
        """Return whether there is an index."""
        return bool(is_index(self.path))

    def retriever(
        self, *, num_results: int = 1000, threads: int = 1, **parameters: Unpack[SearchParameters]
    ) -> KlsaRetriever:
        """Return a retriever of its documents: see `KlsaRetriever`."""
        index = self.opened()
        return KlsaRetriever(index, num_results=num_results, threads=threads, **parameters)

    def text_loader(self, fields: Sequence[str] = ("text",)) -> KlsaTexts:
        """Return a transformer that adds fields of its documents: see `KlsaTexts`."""
        return KlsaTexts(self.opened(), fields)

    def indexer(
        self, *, text_attrs: Sequence[str] = ("text",), **settings: Unpack[BuildOptions]
    ) -> KlsaIndexer:
        """Return an indexer that builds it: see `KlsaIndexer`."""
        return KlsaIndexer(self.path, text_attrs=text_attrs, **settings)

    def index(
        self,
        iter: Iterable[Mapping[str, Any]],  # noqa: A002 - PyTerrier's name
        *,
        text_attrs: Sequence[str] = ("text",),
        **settings: Unpack[BuildOptions],
    ) -> KlsaIndex:
        """Build the index from a corpus."""
        self.indexer(text_attrs=text_attrs, **settings).index(iter)
        self._index = None
        return self


def artifact_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """Return the type and format of an index folder for PyTerrier; None for other folders."""
    if not is_index(Path(path)):
        return None
    return {"type": KlsaIndex.ARTIFACT_TYPE, "format": KlsaIndex.ARTIFACT_FORMAT}
