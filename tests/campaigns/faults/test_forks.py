"""Forked children of a searching process answer and end."""

from __future__ import annotations

from benchmarks.faults import forks


def test_forked_children_answer_and_end(folder, survived):
    survived(forks.run(folder, children=10, functions=("gvsm",)))
