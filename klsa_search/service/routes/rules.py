"""Endpoints of rules: pinned, hidden and boosted documents of searches."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Response
from pydantic import Field
from pydantic_core import to_json

from klsa_search.errors import QueryError, RuleNotFound
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.schemas.base import Answer, RequestModel
from klsa_search.storage.rules import MAX_RULES, Rule

router = APIRouter(dependencies=requires("write"))


class RulesBody(RequestModel):
    """The body of PUT /indexes/{name}/rules."""

    rules: list[Rule] = Field(
        max_length=MAX_RULES,
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


class RulesAnswer(Answer):
    """The rules of an index."""

    index: str
    rules: list[Rule] = Field(description="rules, in their order")
    warnings: list[str] = Field(
        description="what the rules refer to and the index does not have, such as documents"
    )


class RulesSet(Answer):
    """Result of setting rules."""

    index: str
    rules: int = Field(description="number of rules of the index")
    warnings: list[str] = Field(
        description="what the rules refer to and the index does not have, such as documents"
    )


@router.get("/indexes/{name}/rules", summary="List rules", response_model=RulesAnswer)
async def rules(name: str, service: Service) -> Response:
    """List the rules of an index in their order."""

    def answer(index: Index) -> bytes:
        return to_json(
            {"index": index.name, "rules": index.rules, "warnings": index.rule_warnings()}
        )

    return await service.read(name, answer, scope="write")


@router.put("/indexes/{name}/rules", summary="Set rules", response_model=RulesSet)
async def put_rules(name: str, body: RulesBody, service: Service) -> Response:
    """Replace the rules of an index. They take effect on return and survive rebuilds."""
    return await _change(name, lambda index: index.set_rules(body.rules), service)


@router.delete("/indexes/{name}/rules", summary="Remove all rules", response_model=RulesSet)
async def delete_rules(name: str, service: Service) -> Response:
    """Remove all rules of an index, if there are any."""
    return await _change(name, lambda index: index.set_rules([]), service)


@router.get("/indexes/{name}/rules/{id}", summary="Get a rule", response_model=Rule)
async def rule(name: str, id: str, service: Service) -> Response:
    """Return one rule of an index."""

    def answer(index: Index) -> bytes:
        for rule_ in index.rules:
            if rule_["id"] == id:
                return to_json(rule_)
        raise RuleNotFound(f"no rule `{id}`; list rules with GET /indexes/{name}/rules", field="id")

    return await service.read(name, answer, scope="write")


@router.put("/indexes/{name}/rules/{id}", summary="Set a rule", response_model=RulesSet)
async def put_rule(name: str, id: str, body: Rule, service: Service) -> Response:
    """Replace the rule of this ID in its place, or add it as the last."""
    if body.id != id:
        raise QueryError(
            f"id = {body.id!r} differs from {id!r} in the path; leave it out", field="id"
        )
    return await _change(name, lambda index: index.put_rule(body), service)


@router.delete("/indexes/{name}/rules/{id}", summary="Delete a rule", response_model=RulesSet)
async def delete_rule(name: str, id: str, service: Service) -> Response:
    """Delete one rule of an index."""
    return await _change(name, lambda index: index.delete_rule(id), service)


async def _change(name: str, change: Callable[[Index], None], service: IndexService) -> Response:
    def answer(index: Index) -> bytes:
        count, warnings = len(index.rules), index.rule_warnings()
        return to_json({"index": index.name, "rules": count, "warnings": warnings})

    return await service.configure(name, change, answer)
