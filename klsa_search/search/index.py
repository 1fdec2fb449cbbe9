"""The open index: the front door of searching."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.analysis import Analyzer
from klsa_search.arrays import Positions, Scores
from klsa_search.collection import Document
from klsa_search.config import SearchSettings, Settings
from klsa_search.errors import QueryError, StoreError
from klsa_search.forks import lock_free_in_children
from klsa_search.progress import DOCUMENTS, Progress, silent
from klsa_search.search import engine
from klsa_search.search.answering import find
from klsa_search.search.batch import in_parallel
from klsa_search.search.explaining import Explanation
from klsa_search.search.filters.masks import Given as Filter
from klsa_search.search.parameters import whole_number
from klsa_search.search.presenting import Presenting, hits_of
from klsa_search.search.rankers import USES
from klsa_search.search.ranking import both
from klsa_search.search.results import Hit, Results
from klsa_search.search.since import Since
from klsa_search.search.snapshot import Snapshot
from klsa_search.search.snippet import LENGTH, checked_length
from klsa_search.search.state import Following, State, open_state
from klsa_search.search.suggest import Suggestion
from klsa_search.search.wishes import Wishes
from klsa_search.search.writing import Source, Written, batches, documents_of, refuse_whole
from klsa_search.store import Judgements, Manifest, current_generation, write_synonyms
from klsa_search.store.fields.columns import Fields
from klsa_search.store.fields.declared import Declared
from klsa_search.store.generations import writing
from klsa_search.store.log_format import Last, checked_id
from klsa_search.store.log_writing import LogWriter
from klsa_search.store.synonyms import Given, checked_synonyms

Mask = npt.NDArray[np.bool_]


class Index:
    """One generation of an index, opened, and what was written to it since.

    Safe to share between threads.

    Arrays are memory-mapped, so opening costs the vocabulary and little more, once all files were
    found to be what was built: see `open_index`. What was written since the build is taken up when
    the index is opened, and by `refresh`; nothing else changes what it answers. `ranker`, `alpha`,
    `z` and `dimensions` of each call default to the settings the index was built with. StoreError
    from every call but the length once it is closed.
    """

    def __init__(self, generation: Path) -> None:
        built = open_state(generation)
        self._following: Following | None = Following(built)
        self._taking_up = lock_free_in_children()
        try:
            # Nobody has answers from here yet: what is not compiled is compiled at once.
            self._take(self._following.state(built, wait=False))
        except BaseException:
            built.documents.close()
            raise

    def _take(self, state: State) -> None:
        self._state: State | None = state
        self._facts = state.facts

    @property
    def path(self) -> Path:
        """Folder of the generation."""
        return self._facts.path

    @property
    def name(self) -> str:
        """Name of the index."""
        return self.path.parent.name

    @property
    def generation(self) -> str:
        """Name of the generation."""
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """What was built, and of what."""
        return self._facts.manifest

    @property
    def settings(self) -> Settings:
        """All settings it was built with."""
        return self._facts.settings

    @property
    def analyzer(self) -> Analyzer:
        """What turns texts into terms."""
        return self._facts.analyzer

    @property
    def last(self) -> Last:
        """How far the log of writes was taken up."""
        return self._facts.last

    @property
    def since(self) -> Since:
        """How far it has come from what was built, and what of that the build does not know."""
        return self._facts.since

    @property
    def size(self) -> int:
        """Positions, those of documents that are gone among them: what masks and scores are for.

        As many as documents until one is deleted or replaced.
        """
        return len(self._opened().snapshot)

    def __len__(self) -> int:
        """N, the number of documents."""
        return self._facts.documents

    def __repr__(self) -> str:
        """Name, generation and size."""
        return f"<Index {self.name} generation {self.generation}: {len(self)} documents>"

    def refresh(self) -> bool:
        """Take up what was written since, synonyms among it, and a generation that was built since;
        whether any was.

        Answers go on meanwhile; those that are under way are of what was there when they began.
        Cost: 0.5 ms where there is nothing, else see `add`.

        >>> other = open_index("index/reports")
        >>> other.delete(["tyre", "copy"])
        2
        >>> len(index), index.refresh(), len(index)
        (6, True, 4)
        """
        with self._taking_up:
            before = self._opened()
            if self._following is None:
                return False
            state, generation = before, current_generation(self.path.parent)
            if generation != self.path:
                state = open_state(generation)
                self._following = Following(state)
            # Who is in a call keeps the former state, whose files close with its last user.
            self._take(self._following.state(state))
            return self._state is not before

    def add(self, source: Source, *, progress: Progress | None = None, **reading: Any) -> int:
        """Put documents in; returns how many. They are there for good, and found, on return.

        source    what `build` takes: a file or folder, or an iterable of Documents or mappings with
                  id, title, text and metadata. One whose id is there replaces that document.
        progress  called with ("documents", how many are there, None) after each batch
        reading   `format`, `on_error`, `columns` and so on, as `build` has them; documents without
                  ids, which a build numbers, are refused
        By the thousand, each of which is there whole or not at all; where a later one fails those
        before stay. BadDocument for one that cannot be kept, or has a value that does not fit a
        declared field; IndexBusy while another builds, WritingRefused where D is not kept cut,
        StoreError where the disk is full.
        Cost: some 1 ms a document, and 10 ms.

        >>> index.add([{"id": "fan", "title": "Fans", "text": "A fan that stands overheats."}])
        1
        >>> [hit.id for hit in index.search("fans").hits][:1]
        ['fan']
        """
        count = 0
        for puts in batches(documents_of(source, self._declared(), **reading)):
            count += self.write(puts).put
            (progress or silent)(DOCUMENTS, count, None)
        return count

    def delete(self, ids: Iterable[str]) -> int:
        """Delete the documents of these ids; returns how many were there.

        One that is not there is passed over. It is for good, and they are found no more, on return.
        For what fails, see `add`.

        >>> index.delete(["tyre", "copy", "never there"])
        2
        """
        return self.write((), list(ids)).deleted

    def write(self, puts: Sequence[Document] = (), deletes: Sequence[str] = ()) -> Written:
        """Write one batch, the deletions before the documents: all of it, or nothing.

        Of several documents of one id the last stays. It is durable, and found, on return. For what
        fails, see `add`; memory is that of the batch as JSON.
        """
        self._opened()
        if self._following is None:
            raise StoreError("what is pinned cannot be written to: write to the index itself")
        deletes = [checked_id(id_) for id_ in deletes]
        with writing(self.path.parent):
            self.refresh()
            state = self._opened()
            refuse_whole(self.name, state.snapshot)
            there = [id_ for id_ in set(deletes) if state.documents.find(id_) is not None]
            with LogWriter(state.facts.path) as writer:
                last = writer.append(puts, deletes)
        try:
            self.refresh()
        except StoreError as error:
            raise StoreError(
                f"what was written to {self.name} is kept, and not searched yet: {error.message}"
            ) from error
        with self._taking_up:
            if self._following is not None:
                self._following.save()
        return Written(state.facts.path.name, last.seq, len(puts), len(there))

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """What stands for words, or for several in a row, in queries: see `set_synonyms`."""
        return self._opened().language.synonyms

    def set_synonyms(self, synonyms: Given) -> None:
        """Have words stand for others in queries from now on; they replace those there are.

        synonyms  what stands for a word, by word, or rules: `tv, television` for words that stand
                  for each other, `phone => iphone, galaxy` for what is found by *phone*, too; at
                  most 10,000 words with 100 each. Nothing, as `{}`, takes all of them away
        A side may be several words. They are of the index, whatever is built or written, and a
        query is without them by `synonyms=False`. See docs/query-language.md. SettingsError for
        what is no such thing; IndexBusy, StoreError.

        >>> index.set_synonyms(["automobile, engine", "chilled => coolant"])
        >>> index.synonyms["chilled"]
        ('coolant',)
        >>> [hit.id for hit in index.search("chilled").hits]
        ['leak', 'heat', 'pump']
        >>> index.set_synonyms({})
        """
        self._opened()
        if self._following is None:
            raise StoreError("what is pinned cannot be written to: write to the index itself")
        write_synonyms(self.path.parent, checked_synonyms(synonyms))
        self.refresh()

    @property
    def judgements(self) -> Judgements:
        """What people said of its documents: beside all generations, and no part of a state."""
        return Judgements(self.path.parent)

    def judge(self, query: str, id: str, grade: int) -> None:  # noqa: A002 - the field's own name
        """Say how relevant a document is to a query: above 0 it is; the last word counts.

        It is durable on return, stays where the document goes, and changes no ranking: to measure
        rankings by it, see `klsa-eval own`. DocumentNotFound, QueryError. Cost: some ms.

        >>> index.judge("leaking coolant", "leak", 1)
        >>> index.judge("leaking coolant", "tyre", 0)
        >>> [(judged.text, judged.grades) for judged in index.judgements.queries()]
        [('leaking coolant', {'leak': 1, 'tyre': 0})]
        """
        self.positions([id])
        self.judgements.put(query, id, grade)

    def pinned(self) -> Index:
        """Return an index of what is there now, which nothing changes; it closes with this one.

        For who asks several times for one answer, while others write.

        >>> before = index.pinned()
        >>> index.delete(["copy"]), len(before), len(index)
        (1, 6, 5)
        """
        self._opened()
        pinned = object.__new__(Index)  # a third of the time that `copy` takes
        pinned.__dict__.update(self.__dict__, _following=None)
        return pinned

    def scores(self, query: str, *, dimensions: int | None = None, **parameters: Any) -> Scores:
        """Score every document: (size,) float32, in document order; 0 where there is none.

        query       a text, with the operators of docs/query-language.md unless `operators` is off;
                    terms the collection does not hold are passed over
        dimensions  eigenvectors to use, at most those that were built
        parameters  fields of `SearchSettings` and `LanguageSettings`: `ranker`, `alpha`, `z`,
                    `operators`, ...
        QueryError for a parameter outside its limits; an empty query scores 0 everywhere.
        """
        state = self._opened()
        asked = state.language.read(query, state.parameters.reading(parameters))
        chosen = state.parameters.checked(parameters)
        used = state.parameters.dimensions(dimensions, chosen)
        return state.ranking.scores(asked, chosen, used)

    def rank(
        self,
        query: str,
        k: int = 10,
        *,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> tuple[Positions, Scores]:
        """Positions and scores of the k best documents, best first.

        mask  documents that may be answered, all by default: (size,) bool; it changes no score
        Only documents with a score above 0; ties by document order. See `scores`.
        """
        state = self._opened()
        k = whole_number("k", k)
        asked = state.language.read(query, state.parameters.reading(parameters))
        chosen = state.parameters.checked(parameters)
        used = state.parameters.dimensions(dimensions, chosen)
        (top,) = state.ranking.top([asked], k, chosen, used, self._checked(mask))
        return top.positions, top.scores

    def rank_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> list[tuple[Positions, Scores]]:
        """Rank for each query, in their order: what `rank` gives, whatever the number of threads.

        With the ranker bm25, and by default where D is cut, the threads work at the same time, in
        code that needs no GIL.
        """
        state = self._opened()
        k = whole_number("k", k)
        reading = state.parameters.reading(parameters)
        chosen = state.parameters.checked(parameters)
        used = state.parameters.dimensions(dimensions, chosen)

        allowed = self._checked(mask)

        def work(some: Sequence[str]) -> list[tuple[Positions, Scores]]:
            asked = [state.language.read(query, reading) for query in some]
            found = state.ranking.top(asked, k, chosen, used, allowed)
            return [(top.positions, top.scores) for top in found]

        return in_parallel(work, queries, whole_number("threads", threads))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        offset: int = 0,
        filter: Filter | None = None,  # noqa: A002 - the peers' name
        sort: Iterable[str] = (),
        facets: Iterable[str] = (),
        max_facet_values: int = 100,
        distinct: str | None = None,
        min_score: float | None = None,
        liked: Iterable[str] = (),
        disliked: Iterable[str] = (),
        mask: Mask | None = None,
        explain: bool = False,
        highlight: bool = False,
        snippet_length: int = LENGTH,
        quality: bool = False,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> Results:
        """Return the k best documents with titles, snippets and metadata. See `rank`.

        offset    hits to pass over: that of the second page is k. Pages of one k never overlap
        filter    what the metadata must be, as text or JSON (`klsa_search.search.filters`); it
                  changes no score. With a filter or `sort` a blank query finds every document
        sort      metadata fields to sort by, as `field:asc` or `field:desc`, then by score
        facets    metadata fields whose values are counted in all that is found, of each the
                  `max_facet_values` most frequent
        distinct  metadata field of which each value is answered by its best document alone
        min_score least score of what is found; all of it is ranked then
        highlight tell where the words of the query stand in title and snippet, which then is the
                  passage whose words weigh most in the ranking, not the one with most words
        snippet_length
                  characters of a snippet, at most 10,000
        quality   tell how good a match each hit is, and whether any fits: some 2 ms, and a second
                  for the first of an index (`klsa_search.search.quality`)
        explain   tell of each hit how its score came about: some 10 ms a hit
        liked, disliked  ids of documents to move the ranking towards and away from; without a query
                  it is of them alone. Every document is scored then
        QueryError for what cannot be read, and for fields there are not; DocumentNotFound.

        >>> answer = index.search("coolant", filter="year >= 2020", sort=["year:desc"])
        >>> [(hit.id, hit.metadata["year"]) for hit in answer.hits]
        [('leak', 2024), ('heat', 2021)]
        >>> [hit.id for hit in index.search('"wet roads" -title:grip').hits]
        ['tyre', 'copy']
        """
        state = self._opened()
        k = whole_number("k", k)
        asked = state.language.read(query, state.parameters.reading(parameters))
        chosen = state.parameters.checked(parameters)
        used = state.parameters.dimensions(dimensions, chosen)
        allowed = both(self._checked(mask), asked.allowed)
        wishes = Wishes.checked(
            offset, filter, sort, facets, max_facet_values, distinct, min_score, liked, disliked
        )
        if explain and wishes is not None and (wishes.liked or wishes.disliked):
            raise QueryError(
                "explain: a ranking that liked or disliked documents have moved is no sum "
                "of these parts; leave them out",
                field="explain",
            )
        if asked.allowed is not None:
            asked = asked._replace(allowed=None)  # which stands in the mask
        found = find(state, query, asked, k, chosen, used, allowed, wishes)
        understood = state.language.understood(query, asked)
        showing = Presenting(
            state=state, asked=asked, understood=understood, parameters=chosen, dimensions=used
        )
        length, offset = checked_length(snippet_length), wishes.offset if wishes else 0
        hits = showing.hits(found.positions, found.scores, offset, length, weighed=highlight)
        best = None
        if highlight:
            hits = showing.highlighted(hits)
        if quality:
            hits, best = showing.judged(hits, found.positions)
        if explain:
            hits = showing.explained(hits, found.positions)
        return Results(
            query=query,
            understood=understood,
            hits=hits,
            total=found.total,
            ranker=chosen.ranker,
            parameters={
                name: used if name == "dimensions" else getattr(chosen, name)
                for name in USES[chosen.ranker]
            },
            offset=offset,
            facets=found.facets,
            quality=best,
        )

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - the field's own name
        *,
        dimensions: int | None = None,
        **parameters: Any,
    ) -> Explanation:
        """Explain the score of one document, returned by a search or not.

        The score is what a search among this document alone gives it: it is looked at in full,
        however far it is from the first. DocumentNotFound; QueryError as of `search`.

        >>> found = index.explain("leaking coolant", "leak")
        >>> [term.term for term in found.lexical.terms]
        ['leak', 'coolant']
        """
        state = self._opened()
        chosen = state.parameters.checked(parameters)
        used = state.parameters.dimensions(dimensions, chosen)
        asked = state.language.read(query, state.parameters.reading(parameters))
        asked = asked._replace(allowed=None)  # it is explained whether it may be answered or not
        (position,) = state.documents.positions([id])
        alone = np.zeros(len(state.snapshot), np.bool_)
        alone[position] = True
        (top,) = state.ranking.top([asked], 1, chosen, used, engine.Mask(alone))
        score = float(top.scores[0]) if len(top.scores) else None
        understood = state.language.understood(query, asked)
        showing = Presenting(
            state=state, asked=asked, understood=understood, parameters=chosen, dimensions=used
        )
        return showing.explaining().of(position, score)

    def hits(
        self,
        positions: Positions,
        scores: Scores,
        terms: Collection[str],
        weights: Mapping[str, float] | None = None,
    ) -> tuple[Hit, ...]:
        """Hits of ranked documents, in their order, with the passages that show some terms best.

        terms, weights  as `snippet` takes them

        >>> positions, scores = index.rank("wet roads", k=1)
        >>> [hit.id for hit in index.hits(positions, scores, {"road"})]
        ['tyre']
        """
        return hits_of(self._opened(), positions, scores, terms, weights)

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        threads: int = 1,
        mask: Mask | None = None,
        dimensions: int | None = None,
        **wishes: Any,
    ) -> list[Results]:
        """Search for each query, in their order: what `search` gives. See `rank_many`.

        wishes  what else `search` takes, the same for all
        """

        def work(some: Sequence[str]) -> list[Results]:
            given = {"mask": mask, "dimensions": dimensions, **wishes}
            return [self.search(query, k, **given) for query in some]

        return in_parallel(work, queries, whole_number("threads", threads))

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Suggest at most k ways to go on with what was typed so far: words, phrases and titles.

        Words that begin as the last one typed does, as documents write them, the most frequent
        first; terms that follow the words typed in at least two documents; titles with what was
        typed in them, those that begin so first. Where nothing begins so, the last word is put
        right. A blank text gives none, and none raises. See `docs/searching.md`.

        >>> [(each.kind, each.text) for each in index.suggest("tyr")]
        [('word', 'tyres'), ('title', 'Tyres'), ('title', 'Tyres again')]
        """
        state = self._opened()
        if not isinstance(typed, str):
            raise QueryError(f"typed = {typed!r}: a text is needed", field="q")
        return tuple(state.suggesting.suggestions(typed, whole_number("k", k)))

    def document(self, id: str) -> Document:  # noqa: A002 - the field's own name
        """Return the document of that id as it was indexed; DocumentNotFound."""
        return self._opened().documents.get(id)

    def ids(self, positions: Iterable[int] | None = None) -> list[str]:
        """Ids of the documents at these positions, or of all, in document order."""
        documents = self._opened().documents
        return documents.all_ids() if positions is None else documents.ids(positions)

    @property
    def fields(self) -> Fields:
        """Metadata fields as columns, by name: what `mask` of a search is made of.

        A field is a column if it was declared when the index was built, or if all its values are
        of one type; `fields.others` says why any other is none. A column that the build found keeps
        its type: while a document is there that was added with a value that does not fit, it is
        none. One of a field that is first met in added documents is found among those.

        >>> sorted(index.fields)
        ['about', 'seen', 'year']
        >>> recent = index.fields["seen"].between("2024-03-01") & ~index.fields["year"].equal(2021)
        >>> [hit.id for hit in index.search("coolant", mask=recent).hits]
        ['leak', 'pump']
        """
        return self._opened().fields

    @property
    def snapshot(self) -> Snapshot:
        """The arrays of the index: what a room above reads its documents and terms from."""
        return self._opened().snapshot

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Positions of the documents of these ids, in their order; DocumentNotFound."""
        return self._opened().documents.positions(ids)

    def documents(self, positions: Iterable[int]) -> list[Document]:
        """Documents at these positions, in their order, as they were indexed."""
        return self._opened().documents.at(positions)

    def parameters(self, /, **given: Any) -> SearchSettings:
        """Fill up parameters of a search by the index's own; QueryError for what it refuses."""
        return self._opened().parameters.checked(given)

    def warm_up(self) -> None:
        """Compile what the first queries would wait for: half a minute, or 0.3 s from the cache."""
        for ranker in ("bm25", self._facts.defaults.ranker):
            self.rank("", ranker=ranker)
            self.rank_many([""], ranker=ranker)
        living = self._opened().snapshot.living
        first = np.arange(self.size)[slice(None) if living is None else living.allowed][:1]
        self.hits(first, np.zeros(len(first), np.float32), ())

    def close(self) -> None:
        """Let go of all files and memory; any call afterwards is refused with a StoreError.

        A call that another thread is in keeps its arrays until it ends; one that has yet to look up
        an id is refused there.
        """
        state, self._state = self._state, None
        following, self._following = self._following, None
        if state is not None and following is not None:
            state.documents.close()

    def _declared(self) -> Declared:
        """The fields that were declared, with the types they have by now."""
        fields = self._opened().fields
        declared = self.settings.declared()
        known = {name: fields[name].type for name in declared if name in fields}
        return Declared(declared | known)

    def _checked(self, mask: Mask | None) -> engine.Mask | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray):
            fact = f"a {type(mask).__name__}"
        elif mask.dtype != np.bool_ or mask.shape != (self.size,):
            fact = f"of shape {mask.shape} and type {mask.dtype}"
        else:
            return engine.Mask(mask)
        raise QueryError(
            f"mask is {fact}: give an array with a bool for each of the {self.size} positions",
            field="mask",
        )

    def _opened(self) -> State:
        state = self._state
        if state is None:
            raise StoreError(
                f"index {self.name} was closed: open it again with open_index({self.path.parent!s})"
            )
        return state
