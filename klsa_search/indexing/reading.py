"""Read: one pass over a collection, documents to the store and terms to the counts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

import numpy as np

from klsa_search.analysis import Analyzer
from klsa_search.analysis.detecting import detected
from klsa_search.analysis.languages import AUTO, named
from klsa_search.analysis.numbering import NumberedTexts, Numbering
from klsa_search.analysis.workers import AnalysisWorkers
from klsa_search.child_processes import has_interpreter
from klsa_search.collection import Collection, Document
from klsa_search.config import Settings
from klsa_search.features.counts import CountsBuilder, TermCounts
from klsa_search.features.spool import Spools
from klsa_search.indexing.extent import Extent
from klsa_search.indexing.sizes import spool_room
from klsa_search.indexing.stored import Stored
from klsa_search.processors import in_order, processors
from klsa_search.progress import COUNTS, DOCUMENTS, Progress
from klsa_search.store.documents import DocumentWriter
from klsa_search.store.fields.declared import Declared, fitting
from klsa_search.store.fields.writing import FieldsWriter
from klsa_search.store.forward import write_forward
from klsa_search.store.manifest import FieldsEntry
from klsa_search.store.names import SCRATCH

_BATCH = 2000  # documents at a time, and fewer where they are long
_CHARACTERS = 2**20
_TOLD = 200  # documents that tell the language
_ALONE = 2**22  # characters that are analysed as fast as workers would start
_ENCODED = json.JSONEncoder(sort_keys=True).encode


def read(
    collection: Collection,
    generation: Path,
    settings: Settings,
    report: Progress,
    *,
    memory: int,
    processes: int | None = None,
) -> tuple[TermCounts, str, FieldsEntry, Settings]:
    """Write documents, forward index and fields; return counts, a digest of all that was read,
    what there is of fields, and the settings with the language by its name.

    memory     bytes that may be used; what is counted goes to files in the generation's folder
               where it takes more, and they are gone at the end
    processes  that analyse, once the collection proves large enough; the processors by default.
               Their number changes no bit

    This process reads and stores what others analyse. CollectionError, StoreError; KlsaError if a
    process dies.
    """
    declared = Declared(settings.declared())
    documents, settings = settled(fitting(collection, declared), settings)
    scratch = generation / SCRATCH
    scratch.mkdir()
    spools = Spools(scratch, spool_room(memory))
    analyzer = Analyzer(settings)
    builder = CountsBuilder(
        spools,
        title_weight=settings.title_weight,
        common=analyzer.common() if settings.common_weight < 1 else frozenset(),
    )
    known = collection.types if isinstance(collection, Stored) else {}
    fields = FieldsWriter(declared.types, spools.spool(np.uint8), known)
    digest = hashlib.sha256()
    extent = Extent(collection)
    done = 0
    with DocumentWriter(generation) as writer:

        def batches() -> Iterator[list[str]]:
            for batch in batches_of(documents):
                writer.extend(batch)
                fields.extend(batch)
                digest.update(b"".join(map(content_of, batch)))
                extent.pass_on(batch)
                yield [part for document in batch for part in (document.title, document.text)]

        processes = processes or processors()
        with closing(_numbered(batches(), analyzer, processes)) as numbered:
            for texts in numbered:
                builder.extend(
                    texts.numbering,
                    np.frombuffer(texts.numbers, np.int32),
                    np.frombuffer(texts.lengths, np.int32),
                    2,
                    texts.terms,
                )
                done += len(texts.lengths) // 2
                report(DOCUMENTS, done, extent.documents(done))
    report(DOCUMENTS, done, done)
    columns = fields.finish(generation)
    counts = builder.finish(lambda part, whole: report(COUNTS, part, whole))
    write_forward(generation, builder.blocks(), counts)
    builder.close()
    shutil.rmtree(scratch)
    return counts, digest.hexdigest(), columns, settings


def settled(
    documents: Iterator[Document], settings: Settings
) -> tuple[Iterator[Document], Settings]:
    """Documents and settings with the language by its name, found by the first where it is auto."""
    language = named(settings.language)
    if language == AUTO:
        first = list(islice(documents, _TOLD))
        language = detected(f"{document.title}\n{document.text}" for document in first)
        documents = chain(first, documents)
    if language == settings.language:
        return documents, settings
    return documents, settings.model_copy(update={"language": language})


def stored_bytes(generation: Path) -> int:
    """Bytes of what `read` has written to a generation that holds nothing else."""
    return sum(path.stat().st_size for path in generation.iterdir())


def _numbered(
    batches: Iterator[list[str]], analyzer: Analyzer, processes: int
) -> Generator[NumberedTexts, None, None]:
    """Analyse batches in order: here at first, and by other processes once there is much."""
    own = Numbering(analyzer)
    characters = 0
    for texts in batches:
        yield own.numbered(texts)
        characters += sum(map(len, texts))
        if characters > _ALONE and processes > 1 and has_interpreter():
            break
    else:
        return
    del own
    with AnalysisWorkers(analyzer, processes) as workers:
        yield from in_order(workers.submit, batches, ahead=2 * processes)


def batches_of(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Yield documents some together: at most `_BATCH`, and fewer where they are long."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.title) + len(document.text)
        if len(batch) == _BATCH or characters >= _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def content_of(document: Document) -> bytes:
    """What the fingerprint of an index knows of a document."""
    content = [document.id, document.title, document.text, dict(document.metadata)]
    return _ENCODED(content).encode()
