"""Tuning: candidates, their values, the choice among them and what it is worth."""

from klsa_search.evaluation.tuning.folds import HeldOut
from klsa_search.evaluation.tuning.procedure import Tuning, tune, tune_by_halves

__all__ = ["HeldOut", "Tuning", "tune", "tune_by_halves"]
