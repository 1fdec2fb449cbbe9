"""The settings of `config.py` as keyword arguments, for type checkers.

They find misspelt names and values of another type; `config.py` checks limits. A test compares
names and types with the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

from klsa_search.core.build_settings import (
    DateOrder,
    DecimalSign,
    IdentifiersName,
    IdfName,
    StopWordsName,
)
from klsa_search.core.parameters import MatchName, SpellingName

FieldWeights = str | Mapping[str, float]
"""Weights of fields: `title^3,text`, or `{"title": 3, "text": 1}`."""

Tokenizer = Callable[[str], Iterable[tuple[str, int, int]]]
"""Maps a text to its words in order, each with its start and end in the text. The word may differ
from the text between them, for example be a lemma.
"""


class SearchParameters(TypedDict, total=False):
    """Keyword arguments for parsing and ranking a query, to be passed as `**parameters`.

    None means the setting of the index.

    >>> bold: SearchParameters = {"alpha": 0.9, "spelling": "off"}
    >>> index.parameters(**bold).alpha
    0.9
    """

    operators: bool | None
    spelling: SpellingName | None
    synonyms: bool | None
    match: MatchName | None
    ranker: str | None
    alpha: float | None
    hold_back: float | None
    z: int | None
    sharpness: float | None
    spectral: str | None
    gamma: float | None
    head: int | None
    unit_length: bool | None
    coverage: float | None
    latent: float | None
    lexical_sharpness: float | None
    passage_weight: float | None
    boosts: FieldWeights | None
    exact: bool | None
    dimensions: int | None


class IndexSettings(TypedDict, total=False):
    """Keyword arguments of `build`: all settings of an index, to be passed as `**settings`.

    >>> published: IndexSettings = {"k1": 2.0, "search": "title,text"}
    >>> build("reports.jsonl", name="reports", **published).settings.k1
    2.0
    """

    language: str | Sequence[str]
    language_field: str | None
    stemmer: str
    stop_words: StopWordsName
    tokenizer: str | Tokenizer | None
    extra_stop_words: tuple[str, ...] | list[str]
    fold_accents: bool | None
    symbols: bool
    k1: float
    b: float
    search: FieldWeights
    identifiers: IdentifiersName
    common_weight: float
    idf: IdfName
    burstiness: float
    kernel: str
    kernel_k1: float
    idf_power: float
    pairs: float
    centred: bool
    normalised: bool
    neighbours: int
    dimensions: int
    latent_dimensions: int
    seed: int
    fields: tuple[str, ...] | list[str]
    split: Mapping[str, str] | tuple[str, ...] | list[str]
    units: tuple[str, ...] | list[str]
    html: tuple[str, ...] | list[str] | None
    dates: DateOrder | None
    decimal: DecimalSign | None
    passages: str | int
    operators: bool | None
    spelling: SpellingName
    synonyms: bool
    match: MatchName
    ranker: str
    alpha: float
    hold_back: float
    z: int
    sharpness: float
    spectral: str
    gamma: float
    head: int
    unit_length: bool
    coverage: float
    latent: float
    lexical_sharpness: float
    passage_weight: float
    boosts: FieldWeights
    exact: bool
    page_title: str
