"""Settings that an index is built with: analysis, kernels, eigenvectors, fields and passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator

from klsa_search.core.field_weights import DEFAULT, SearchedFields
from klsa_search.core.plugins import PluginName
from klsa_search.core.settings_group import OptionDisplay, SettingsGroup, conflict

LIST: Final = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""Takes a list, as TOML and JSON have, for a tuple."""

DateOrder = Literal["day-first", "month-first"]  # order in dates such as 3/5/2025
DecimalSign = Literal["comma", "point"]  # sign before the decimals of a number
StopWordsName = Literal["short", "long", "none"]
IdentifiersName = Literal["auto", "parts", "pairs", "off"]
IdfName = Literal["lucene", "robertson", "atire"]
KERNEL_NAMES: Final = PluginName("kernel", ("bm25",))
Kernel = Annotated[str, KERNEL_NAMES]
"""Name of the built-in weighting of document features or of a plug-in."""

TOKENIZER_NAMES: Final = PluginName("tokenizer", ())
Tokenizer = Callable[[str], Iterable[tuple[str, int, int]]]
"""Maps a text to its words in order, each with its start and end in the text. The word may differ
from the text between them, for example be a lemma.
"""

FieldType = Literal["keyword", "number", "date"]

PASSAGE_WORDS = 300  # words of a passage, by default
MAX_BURSTINESS = 4
"""Limit of `burstiness`; above it scores of the longest query would not fit into 32 bits."""

MAX_FIELDS = 100  # limit of the number of metadata fields that are columns


def _joined(value: object) -> object:
    """Return a list of languages as the setting writes it."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


class AnalysisSettings(SettingsGroup):
    """Settings of the analyser: text to terms."""

    language: Annotated[str, BeforeValidator(_joined)] = Field(
        "auto",
        description="use the stop words and stemmer of this language, by name or code (german "
        "or de); of several, separated by commas (de,en), for each document those of its language; "
        "none; or auto, those that a tenth of the documents are in, English if there is too "
        "little text to tell",
    )
    language_field: str | None = Field(
        None,
        min_length=1,
        description="take the language of a document from this metadata field, which has names "
        "or codes; that of other documents is detected",
    )
    stemmer: str = Field(
        "auto", description="use this Snowball stemmer; auto for that of the language, or none"
    )
    stop_words: StopWordsName = Field(
        "short",
        description="ignore stop words: short, 33 of English and none of other languages; "
        "long, all on the list of the language; or none",
    )
    extra_stop_words: Annotated[tuple[str, ...], LIST] = Field(
        (), description="ignore these words too"
    )
    fold_accents: bool | None = Field(
        None,
        description="treat é as e, for all letters with marks; by default not for marked "
        "letters that are part of the alphabet of the language "
        "(docs/guides/languages.md)",
    )
    symbols: bool = Field(True, description="keep the signs of names such as C++, C# and .NET")
    tokenizer: str | None = Field(
        None,
        # MODULE:FUNCTION, or any text without a colon.
        pattern=r"^([^:]+|[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*)$",
        description="find words with this function, MODULE:FUNCTION, or the plug-in of this "
        "name, instead of the rules for all scripts (docs/guides/languages.md)",
    )

    @field_validator("tokenizer", mode="after")
    @classmethod
    def _installed(cls, value: str | None) -> str | None:
        return value if value is None or ":" in value else TOKENIZER_NAMES.checked(value)


def _searched(value: object) -> str:
    try:
        return str(SearchedFields.of(value))
    except ValueError as error:
        raise conflict("search", str(error), value) from None


class KernelSettings(SettingsGroup):
    """Settings of the query kernel and the document kernel K [KLSA eq. 3-4]."""

    k1: float = Field(1.2, ge=0, le=100, description="set the saturation of term counts in BM25")
    b: float = Field(0.75, ge=0, le=1, description="set the weight of the document length in BM25")
    search: Annotated[str, BeforeValidator(_searched)] = Field(
        DEFAULT,
        description="search these fields: title, text and metadata fields, as NAME or "
        "NAME^WEIGHT, separated by commas; words count by the weight of their field, a whole "
        "number from 1 to 16",
    )
    identifiers: IdentifiersName = Field(
        "auto",
        description="find identifiers such as getUserName by their parts, too; by pairs of them "
        "(user name); or off; auto, by parts if names of code are frequent in the texts, else by "
        "pairs",
    )
    common_weight: float = Field(
        0.5,
        ge=0.01,
        le=1,
        description="weight query words on the long stop list that are not ignored; the "
        "document features leave them out; 1 treats them like other words",
    )
    idf: IdfName = Field(
        "lucene",
        description="weight query words in n of N documents by: lucene, ln(1 + (N - n + 0.5) "
        "/ (n + 0.5)); robertson, the same without 1 + and not below 0; or atire, "
        "ln(N / n)",
    )
    burstiness: float = Field(
        2.0,
        ge=1,
        le=MAX_BURSTINESS,
        description="multiply the weight of bursty terms, frequent in few documents, by up to "
        "this; 1 is plain idf",
    )
    kernel: Kernel = Field(
        "bm25", description="weight the document features by bm25, or by the plug-in of this name"
    )
    kernel_k1: float = Field(3.0, ge=0, le=100, description="set k1 of the document kernel")
    idf_power: float = Field(
        1.0,
        ge=0,
        le=2,
        description="set p in w(t)^p sat(t,d), the document features; 0.5 in the paper",
    )
    pairs: float = Field(
        0.5, ge=0, le=10, description="weight adjacent word pairs among the document features"
    )
    centred: bool = Field(True, description="subtract the mean document from the document features")
    normalised: bool = Field(True, description="normalise the document features to length 1")
    neighbours: int = Field(
        20, ge=1, le=1000, description="keep this many nearest documents for coverage"
    )


class SpectrumSettings(SettingsGroup):
    """Settings of the eigenvectors."""

    latent_dimensions: int = Field(
        50, ge=1, description="use this many eigenvectors for the latent cosine"
    )
    seed: int = Field(0, ge=0, description="seed the start vector of the solver")


def _split_fields(value: object) -> object:
    """Return separators by name as settings: NAME=SEPARATOR."""
    if isinstance(value, list):  # of TOML and JSON
        return tuple(value)
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if not isinstance(name, str) or "=" in name:
            raise conflict("split", "the name of a split field must be a text without =", name)
    return tuple(f"{name}={separator}" for name, separator in value.items())


class FormSettings(SettingsGroup):
    """How a source writes HTML, dates and numbers."""

    html: Annotated[tuple[str, ...] | None, LIST, OptionDisplay(metavar="NAME", default="auto")] = (
        Field(
            None,
            max_length=MAX_FIELDS,
            description="read HTML in this field (title, text or metadata) as text; none keeps it; "
            "by default the fields of which most values hold HTML",
        )
    )
    dates: Annotated[DateOrder | None, OptionDisplay(default="auto")] = Field(
        None,
        description="read dates of metadata fields such as 3/5/2025 in this order; by default "
        "their values decide",
    )
    decimal: Annotated[DecimalSign | None, OptionDisplay(default="auto")] = Field(
        None,
        description="read numbers in texts of metadata fields, such as 1.250, with this decimal "
        "sign; by default their values decide",
    )

    @field_validator("html", mode="after")
    @classmethod
    def _html_once(cls, fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if fields is not None and not all(map(str.strip, fields)):
            raise conflict("html", "give the name of a field", "")
        return None if fields is None else tuple(sorted(set(fields)))


def _sorted_unique(
    setting: str, declarations: tuple[str, ...], names: list[str], fault: str
) -> tuple[str, ...]:
    """Return declarations in order; the error of the setting if one names a field again."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise conflict(setting, f"{name!r} {fault}", declarations[number])
    return tuple(sorted(declarations))


class FieldSettings(FormSettings):
    """Metadata fields declared as columns; others are detected by their values."""

    fields: Annotated[tuple[str, ...], LIST, OptionDisplay("--field", "NAME[:TYPE]")] = Field(
        (),
        max_length=MAX_FIELDS,
        description="make this metadata field filterable: NAME:keyword, NAME:number, "
        "NAME:date, or NAME alone, for the type of its first value",
    )

    split: Annotated[
        tuple[str, ...], BeforeValidator(_split_fields), OptionDisplay(metavar="NAME=SEPARATOR")
    ] = Field(
        (),
        max_length=MAX_FIELDS,
        description="divide texts of this metadata field into a list of values: "
        "NAME=SEPARATOR, as in 'tags=;'",
    )

    units: Annotated[tuple[str, ...], LIST, OptionDisplay(metavar="NAME=UNIT")] = Field(
        (),
        max_length=MAX_FIELDS,
        description="read texts of this metadata field as numbers with a currency or percent sign: "
        "NAME=UNIT, as in 'price=€'; by default its values decide",
    )

    @field_validator("units", mode="after")
    @classmethod
    def _units_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for assignment in value:
            name, _, unit = assignment.rpartition("=")
            if not name.strip() or not unit:
                raise conflict("units", "give NAME=UNIT, as in 'price=€'", assignment)
        names = [assignment.rpartition("=")[0] for assignment in value]
        return _sorted_unique("units", value, names, "has two units")

    @field_validator("split", mode="after")
    @classmethod
    def _split_once(cls, declarations: tuple[str, ...]) -> tuple[str, ...]:
        for declaration in declarations:
            name, _, separator = declaration.partition("=")
            if not name.strip() or not separator:
                raise conflict("split", "give NAME=SEPARATOR, as in 'tags=;'", declaration)
        names = [declaration.partition("=")[0] for declaration in declarations]
        return _sorted_unique("split", declarations, names, "is split twice")

    @field_validator("fields", mode="after")
    @classmethod
    def _named_once(cls, declarations: tuple[str, ...]) -> tuple[str, ...]:
        for declaration in declarations:
            name, colon, kind = _parts(declaration)
            if not name.strip():
                raise conflict("fields", "the name is missing", declaration)
            if colon and kind not in get_args(FieldType):
                choices = ", ".join(get_args(FieldType))
                reason = f"the type after the last colon must be one of: {choices}"
                raise conflict("fields", reason, declaration)
        names = [_parts(declaration)[0] for declaration in declarations]
        return _sorted_unique("fields", declarations, names, "is declared twice")

    def declared(self) -> dict[str, FieldType | None]:
        """Return declared fields by name with their types; None means that of the first value."""
        parts = map(_parts, self.fields)
        types: dict[str, FieldType] = {kind: kind for kind in get_args(FieldType)}
        return {name: types.get(kind) if colon else None for name, colon, kind in parts}

    def separators(self) -> dict[str, str]:
        """Return the separators of split fields by name."""
        return {name: separator for name, _, separator in (e.partition("=") for e in self.split)}


_PASSAGES = "auto|off|[1-9][0-9]{1,4}"  # pattern of the setting `passages`


def _passages(value: object) -> object:
    """Return the text of the setting, which may be given as a number of words."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and not re.fullmatch(_PASSAGES, text):
        reason = "use auto, off, or the words of a passage, from 10 to 99999"
        raise conflict("passages", reason, value)
    return text


class PassageSettings(SettingsGroup):
    """Passages of long documents, which are searched as well as whole documents."""

    passages: Annotated[str, BeforeValidator(_passages)] = Field(
        "auto",
        pattern=f"^({_PASSAGES})$",
        description="divide long documents into passages of about this many words, which are "
        "found and ranked as well: 10 to 99,999; auto, 300 if documents are long enough for a "
        "tenth more passages than documents; or off",
    )

    @property
    def passage_words(self) -> int:
        """Return the words of a passage, of documents that are divided."""
        return int(self.passages) if self.passages.isdigit() else PASSAGE_WORDS


def _parts(declaration: str) -> tuple[str, str, str]:
    """Return name, colon and type of a declaration; the last two are blank without a type."""
    name, colon, kind = declaration.rpartition(":")
    return (name, colon, kind) if colon else (declaration, "", "")
