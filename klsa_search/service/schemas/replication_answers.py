"""States of backups and of followers in answers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from klsa_search.errors import StoreError
from klsa_search.service.replication import Replication
from klsa_search.service.schemas.responses import Answer
from klsa_search.storage.repository import ReplicationState


class ReplicationAnswer(Answer):
    """The backup that was last written, or that a follower serves."""

    number: int | None = Field(description="its number; null before the first")
    created: str | None = Field(description="time of its content: UTC, ISO 8601")
    seconds: float | None = Field(description="seconds since then: for a follower, its lag")
    newest: int | None = Field(description="number of the newest backup that was seen")
    directory: str | None = Field(description="ID of the index directory that wrote the backup")
    ignored: int | None = Field(
        description="number of the newest backup if another index directory wrote it, which is "
        "not followed; else null"
    )


def replication_answers(
    replications: Sequence[Replication],
) -> tuple[dict[str, ReplicationAnswer], list[str]]:
    """Return the states of replications by work, and why some cannot be read.

    Cost: reading a small file for each.
    """
    answers: dict[str, ReplicationAnswer] = {}
    faults = []
    for replication in replications:
        state = None
        try:
            state = replication.state()
        except StoreError as fault:
            faults.append(fault.message)
        answer = ReplicationAnswer.model_validate(state or ReplicationState(""))
        answers[replication.work] = answer
    return answers, faults
