"""Endpoints of what changes searches: synonyms, and rules that pin, hide and boost documents.

Bodies are checked where they are written, in a thread: the models only document them, as checking
a thousand rules takes longer than an event loop may wait.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field, SkipValidation
from pydantic_core import to_json

from klsa_search.core.parameters import Text
from klsa_search.errors import QueryError, RuleNotFound
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, changing, reading, router_for
from klsa_search.service.middleware.bodies import BodyLimit
from klsa_search.service.schemas.base import Answer, RequestModel
from klsa_search.storage.rules import MAX_RULES, Rule, RuleActions, RuleCondition

reading_router = router_for("search")
router = router_for(
    "write",
    # The event loop decodes 4 MiB in some 40 ms.
    body=BodyLimit(2**22, "send fewer at a time"),
)


class RulesBody(RequestModel):
    """The body of PUT /indexes/{name}/rules."""

    rules: SkipValidation[list[Rule]] = Field(
        description=f"rules, at most {MAX_RULES:,}; the first have precedence",
        examples=[
            [
                {
                    "id": "winter",
                    "when": {"query_contains": "jacket", "until": "2027-03-01T00:00:00+01:00"},
                    "then": {"pin": [{"id": "parka-7", "position": 1}]},
                }
            ]
        ],
    )


class RuleBody(RequestModel):
    """The body of PUT /indexes/{name}/rules/{id}."""

    id: SkipValidation[str] = Field("", description="that of the path, or left out")
    when: SkipValidation[RuleCondition | None] = Field(None, description="when it applies")
    then: SkipValidation[RuleActions] = Field(description="what it changes")


_Warnings = Annotated[
    list[str],
    Field(description="what the rules refer to and the index does not have, such as documents"),
]


class RulesAnswer(Answer):
    """The rules of an index."""

    index: str
    rules: list[Rule] = Field(description="rules, in their order")
    warnings: _Warnings


class RulesSet(Answer):
    """Result of setting rules."""

    index: str
    rules: int = Field(description="number of rules of the index")
    warnings: _Warnings

    @classmethod
    def of(cls, index: Index) -> RulesSet:
        """Count the rules of an index."""
        warnings = index.rule_warnings()
        return cls(index=index.name, rules=len(index.rules), warnings=warnings)


@router.get("/indexes/{name}/rules", summary="List rules", response_model=RulesAnswer)
async def rules(name: str, service: Service) -> Response:
    """List the rules of an index in their order."""

    def answer(index: Index) -> bytes:
        return to_json(
            {"index": index.name, "rules": index.rules, "warnings": index.rule_warnings()}
        )

    return Response(await service.look_up(name, answer), media_type="application/json")


@router.put("/indexes/{name}/rules", summary="Set rules")
@changing
def put_rules(index: Index, body: RulesBody) -> RulesSet:
    """Replace the rules of an index. They take effect on return and survive rebuilds."""
    index.set_rules(body.rules)
    return RulesSet.of(index)


@router.delete("/indexes/{name}/rules", summary="Delete all rules")
@changing
def delete_rules(index: Index) -> RulesSet:
    """Delete all rules of an index, if there are any."""
    index.set_rules([])
    return RulesSet.of(index)


@router.get("/indexes/{name}/rules/{id}", summary="Get a rule", response_model=Rule)
async def rule(name: str, id: str, service: Service) -> Response:
    """Return one rule of an index."""

    def answer(index: Index) -> bytes:
        for rule_ in index.rules:
            if rule_["id"] == id:
                return to_json(rule_)
        raise RuleNotFound(f"no rule `{id}`; list rules with GET /indexes/{name}/rules", field="id")

    return Response(await service.look_up(name, answer), media_type="application/json")


@router.put("/indexes/{name}/rules/{id}", summary="Set a rule")
@changing
def put_rule(index: Index, id: str, body: RuleBody) -> RulesSet:
    """Replace the rule of this ID in its place, or add it as the last.

    The body may leave the ID out.
    """
    if body.id not in ("", id):
        raise QueryError(
            f"id = {body.id!r} differs from {id!r} in the path; leave it out", field="id"
        )
    index.put_rule({"id": id, "when": body.when or {}, "then": body.then})
    return RulesSet.of(index)


@router.delete("/indexes/{name}/rules/{id}", summary="Delete a rule")
@changing
def delete_rule(index: Index, id: str) -> RulesSet:
    """Delete one rule of an index."""
    index.delete_rule(id)
    return RulesSet.of(index)


class SynonymsBody(RequestModel):
    """The body of PUT and PATCH /indexes/{name}/synonyms."""

    synonyms: SkipValidation[dict[Text, list[Text]] | list[Text]] = Field(
        description="synonyms by word, or rules: words that stand for each other, or one way; "
        "at most 10,000 words with 100 synonyms each, of 100 characters",
        examples=[["tv, television", "phone => iphone, galaxy"]],
    )


class SynonymsAnswer(Answer):
    """The synonyms of an index."""

    index: str
    synonyms: dict[str, list[str]] = Field(description="synonyms by word or sequence of words")


class SynonymsSet(Answer):
    """Result of changing synonyms."""

    index: str
    words: int = Field(description="number of words with synonyms")

    @classmethod
    def of(cls, index: Index) -> SynonymsSet:
        """Count the words of an index that have synonyms."""
        return cls(index=index.name, words=len(index.synonyms))


@reading_router.get("/indexes/{name}/synonyms", summary="List synonyms")
@reading()
def synonyms(index: Index) -> SynonymsAnswer:
    """List the synonyms of an index by word."""
    listed = {word: list(others) for word, others in index.synonyms.items()}
    return SynonymsAnswer(index=index.name, synonyms=listed)


@router.put("/indexes/{name}/synonyms", summary="Set synonyms")
@changing
def put_synonyms(index: Index, body: SynonymsBody) -> SynonymsSet:
    """Replace the synonyms of an index. They take effect on return and survive rebuilds.

    Pass an object with the synonyms of each word, or a list of rules as in Solr and Elasticsearch.
    """
    index.set_synonyms(body.synonyms)
    return SynonymsSet.of(index)


@router.patch("/indexes/{name}/synonyms", summary="Add synonyms")
@changing
def patch_synonyms(index: Index, body: SynonymsBody) -> SynonymsSet:
    """Add synonyms to those of an index. Words keep the synonyms that they have.

    Concurrent additions do not lose each other's words. The body has the form of PUT.
    """
    index.add_synonyms(body.synonyms)
    return SynonymsSet.of(index)


@router.delete("/indexes/{name}/synonyms", summary="Delete all synonyms")
@changing
def delete_synonyms(index: Index) -> SynonymsSet:
    """Delete all synonyms of an index, if there are any."""
    index.set_synonyms({})
    return SynonymsSet.of(index)
