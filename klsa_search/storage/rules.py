"""Rules of an index: which searches they apply to, and what they change; rows of the catalogue.

Like synonyms, rules belong to the index, not to a generation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from klsa_search.collection.model import MAX_ID_BYTES, text_fault
from klsa_search.core.settings_group import reason_of
from klsa_search.errors import RuleNotFound, SettingsError
from klsa_search.storage.catalog_entry import Entry, change_rows
from klsa_search.storage.names import NAME

MAX_RULES: Final = 1_000
MAX_DOCUMENTS: Final = 100
"""Documents that a rule pins at most, and hides."""
MAX_BOOSTS: Final = 10
MAX_FACTOR: Final = 100.0


def _storable(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    if fault := text_fault(text):
        raise ValueError(f"it {fault}")
    return text


def _document_id(text: str) -> str:
    if len(text.encode()) > MAX_ID_BYTES:
        raise ValueError(f"it has more than {MAX_ID_BYTES} bytes")
    return text


def _rule_id(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(
            "it is not 1 to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit"
        )
    return text


def _time(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass
    raise ValueError("it is not a time with a time zone, such as 2026-12-24T18:00:00+01:00")


RuleId = Annotated[str, AfterValidator(_rule_id)]
_QueryText = Annotated[str, Field(max_length=1_000), AfterValidator(_storable)]
_FilterText = Annotated[str, Field(max_length=10_000), AfterValidator(_storable)]
_DocumentId = Annotated[str, AfterValidator(_storable), AfterValidator(_document_id)]
_Time = Annotated[str, AfterValidator(_time)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class RuleCondition(_Part):
    """When a rule applies: all conditions must hold; without any, it applies to every search."""

    query_is: _QueryText | None = Field(
        None, description="the query has these words and no others, in this order"
    )
    query_contains: _QueryText | None = Field(
        None, description="the query contains these words, adjacent and in this order"
    )
    filter: _FilterText | None = Field(
        None, description="the filter of the search is this one, or has it as a part of an AND"
    )
    begin: _Time | None = Field(
        None, alias="from", description="first moment, as 2026-12-01T00:00:00+01:00"
    )
    end: _Time | None = Field(None, alias="until", description="moment at which it ends")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.query_is is not None and self.query_contains is not None:
            raise ValueError("query_is and query_contains exclude each other; give one of them")
        begin, end = self.begin, self.end
        if begin and end and datetime.fromisoformat(begin) >= datetime.fromisoformat(end):
            raise ValueError("from is not before until")
        return self


class Pin(_Part):
    """A document and its position among the hits."""

    id: _DocumentId
    position: int = Field(ge=1, le=1_000, description="position among the hits, from 1")


class Boost(_Part):
    """A factor for the scores of documents."""

    filter: _FilterText = Field(description="documents whose score is multiplied")
    factor: float = Field(
        ge=1 / MAX_FACTOR, le=MAX_FACTOR, description="above 1 raises, below 1 lowers"
    )


class RuleActions(_Part):
    """What a rule changes."""

    pin: list[Pin] = Field([], max_length=MAX_DOCUMENTS, description="documents at fixed positions")
    hide: list[_DocumentId] = Field(
        [], max_length=MAX_DOCUMENTS, description="IDs of documents that are not found"
    )
    boost: list[Boost] = Field([], max_length=MAX_BOOSTS, description="factors for scores")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        pinned = [pin.id for pin in self.pin]
        if not (pinned or self.hide or self.boost):
            raise ValueError("nothing to do; give pin, hide or boost")
        for name, value in (
            ("pin: document", pinned),
            ("pin: position", [pin.position for pin in self.pin]),
            ("pin and hide: document", [*dict.fromkeys(pinned), *dict.fromkeys(self.hide)]),
        ):
            if (repeated := _first_repeated(value)) is not None:
                raise ValueError(f"{name} {repeated!r} is given twice; give it once")
        return self


class Rule(_Part):
    """A rule of an index: see docs/guides/rules.md."""

    id: RuleId = Field(description="1 to 100 letters, digits, `.`, `_` or `-`")
    when: RuleCondition = Field(RuleCondition.model_validate({}), description="when it applies")
    then: RuleActions = Field(description="what it changes")

    @model_validator(mode="wrap")
    @classmethod
    def _named(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Name the rule in errors, not its position in the list."""
        try:
            return handler(value)
        except ValidationError as error:
            first = error.errors()[0]
            id_ = value.get("id") if isinstance(value, Mapping) else None
            named = f"rule {id_!r}"[:120] if isinstance(id_, str) else "a rule without id"
            where = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
            )
            reason = "unknown field" if first["type"] == "extra_forbidden" else reason_of(first)
            reason = reason.removeprefix("Value error, ")
            message = f"{named}: {where[1:]}: {reason}" if where else f"{named}: {reason}"
            raise PydanticCustomError(
                "invalid_rule", "{message}", {"message": message, "field": "rules"}
            ) from None

    def as_json(self) -> dict[str, Any]:
        """Return the rule as it was given, without what is empty."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


_RULES: Final = TypeAdapter(list[Rule])


def rules_of(mappings: Iterable[Mapping[str, Any] | Rule]) -> tuple[Rule, ...]:
    """Return rules from their JSON; SettingsError names the rule at fault."""
    if isinstance(mappings, Mapping | str) or not isinstance(mappings, Iterable):
        raise SettingsError("rules: not a list; give a list of rules", field="rules")
    listed = list(mappings)
    if len(listed) > MAX_RULES:
        raise SettingsError(
            f"rules: {len(listed):,} rules, more than the limit of {MAX_RULES:,}; give fewer",
            field="rules",
        )
    try:
        rules = _RULES.validate_python(listed)
    except ValidationError as error:
        raise SettingsError(f"rules: {error.errors()[0]['msg']}", field="rules") from None
    if (repeated := _first_repeated([rule.id for rule in rules])) is not None:
        raise SettingsError(f"rules: rule {repeated!r} is given twice; give it once", field="rules")
    return tuple(rules)


def stored_rules(entry: Entry) -> tuple[Rule, ...]:
    """Return the rules of an index, in order; IndexDamaged."""
    return rules_of(json.loads(rule) for _, rule in entry.rows("rules"))


def write_rules(path: Path, rules: Sequence[Rule]) -> None:
    """Replace the rules of the index at a path; none removes them.

    Raise IndexNotFound, IndexBusy, IndexDamaged or StoreError.
    """
    with change_rows(path) as entry:
        _replace(entry, rules)


def change_rule(path: Path, id_: str, rule: Rule | None) -> None:
    """Replace or add one rule, or delete it if None; RuleNotFound. See `write_rules`."""
    with change_rows(path) as entry:
        rules = {earlier.id: earlier for earlier in stored_rules(entry)}
        if rule is not None:
            rules[id_] = rule
        elif rules.pop(id_, None) is None:
            raise RuleNotFound(f"no rule `{id_}`; list the rules", field="id")
        _replace(entry, rules_of(rules.values()))


def _replace(entry: Entry, rules: Sequence[Rule]) -> None:
    rows = [(rule.id, json.dumps(rule.as_json(), ensure_ascii=False)) for rule in rules]
    entry.replace("rules", rows)


def _first_repeated(values: Iterable[Any]) -> Any | None:
    return next((value for value, times in Counter(values).items() if times > 1), None)
