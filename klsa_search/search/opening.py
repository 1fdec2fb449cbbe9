"""Open indexes by path, and list them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from klsa_search.analysis.tokenizers import trust
from klsa_search.core.build_settings import Tokenizer
from klsa_search.errors import SettingsError
from klsa_search.search.index import Index
from klsa_search.search.models import Models, refuse_other_model
from klsa_search.search.parts.opening import open_reader
from klsa_search.storage.catalog import followed
from klsa_search.storage.maintenance import indexes_in
from klsa_search.storage.names import index_directory

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder, Reranker
    from klsa_search.embedding.opening import EmbeddingFunction


def open_index(
    path: str | Path,
    *,
    tokenizer: Tokenizer | str | None = None,
    embedders: Mapping[str, Embedder | EmbeddingFunction | str] | None = None,
    reranker: Reranker | str | None = None,
) -> Index:
    """Open the current generation of the index at `<home>/<name>`, by its name or an alias.

    tokenizer  tokenizer that the index was built with, if any: the function, or `module:function`.
               It is code that runs in this process; passing it once trusts it until the process
               ends
    embedders  by space: a search without `vector` embeds its query by the first of them whose space
               the index has, and documents that are written without vectors get some. What
               `klsa_search.embedding.open_embedder` takes. They are not pickled with the index
    reranker   of `search(..., rerank=N)`: a function, or what `klsa_search.embedding.open_reranker`
               takes; not pickled either

    IndexNotFound, IndexDamaged or FormatUnsupported; SettingsError if the tokenizer of the index is
    not trusted, or another one is given, or vectors are by another model than the embedder. File
    sizes are checked each time; checksums the first time on this machine, and after any change:
    about a second a gigabyte, on all processors.

    >>> open_index("index/reports")
    <Index reports generation 000001: 6 documents>
    """
    name = None if tokenizer is None else trust(tokenizer)
    models = Models.opened(embedders or {}, reranker)
    folder = followed(Path(path))
    index = Index(open_reader(folder), models)
    try:
        for entry in index.manifest.vectors:
            if entry.name in models.embedders:
                refuse_other_model(index.name, entry, models.embedders[entry.name])
    except SettingsError:
        index.close()
        raise
    built = index.settings.tokenizer
    if name not in (None, built):
        index.close()
        raise SettingsError(
            f"index `{index.name}` was built with {built or 'no tokenizer'}, not "
            f"with {name}; open it with its own tokenizer, or rebuild it",
            field="tokenizer",
        )
    return index


def list_indexes(home: str | Path | None = None) -> list[str]:
    """Return the sorted names of the indexes of an index directory; none if it does not exist.

    home  by default `$KLSA_HOME` or `index`

    OSError if it cannot be read. Cost: that of listing each of its folders.

    >>> list_indexes()
    ['reports']
    """
    return [path.name for path in indexes_in(index_directory(home))]
