"""Tallies: what a part of the campaign tried, and how each trial ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 5


@dataclass
class Tally:
    """Trials of one kind, counted by how they ended.

    survived  ends that are as they should be: how → times
    failed    those that are not: how → times
    examples  the first of each failure, enough to try it again
    notes     what was measured beside
    """

    part: str
    trial: str
    survived: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)

    def survive(self, how: str, times: int = 1) -> None:
        """Count trials that ended well."""
        if times:
            self.survived[how] += times

    def fail(self, how: str, example: str) -> None:
        """Count a trial that did not."""
        self.failed[how] += 1
        examples = self.examples.setdefault(how, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    @property
    def tried(self) -> int:
        """All trials."""
        return self.survived.total() + self.failed.total()

    def as_json(self) -> dict[str, Any]:
        """Give everything as a value for JSON."""
        return {
            "part": self.part,
            "trial": self.trial,
            "tried": self.tried,
            "survived": dict(sorted(self.survived.items())),
            "failed": dict(sorted(self.failed.items())),
            "examples": self.examples,
            "notes": self.notes,
        }


HEAD = "| part | a trial | tried | survived | how they ended |\n|---|---|---|---|---|"
"""Of a table in Markdown."""


def row(tally: Tally) -> str:
    """Write a tally as a row of that table."""
    ends = [f"{how}: {times:,}" for how, times in sorted(tally.survived.items())]
    ends += [f"**{how}: {times:,}**" for how, times in sorted(tally.failed.items())]
    ends += [
        f"{name}: {value:,.0f}" if value >= 100 else f"{name}: {value:.3g}"
        for name, value in tally.notes.items()
    ]
    cells = (tally.part, tally.trial, f"{tally.tried:,}", f"{tally.survived.total():,}")
    return f"| {' | '.join(cells)} | {'; '.join(ends)} |"


def failures(tallies: Sequence[Tally]) -> str:
    """Tell what failed, with its first examples."""
    return "\n".join(
        f"{tally.part}: {how}: {example}"
        for tally in tallies
        for how, examples in tally.examples.items()
        for example in examples
    )
