"""Measure and compare rankings, record and replay runs, and tune settings."""

from klsa_search.evaluation.comparison import TIE, Compared, Comparison, Contrast, compare
from klsa_search.evaluation.differences import draw_differences
from klsa_search.evaluation.figure import draw_grid
from klsa_search.evaluation.forecasting import Forecast, forecast
from klsa_search.evaluation.grid import Grid, measure_grid
from klsa_search.evaluation.measures import MEASURES, Judge, Measured
from klsa_search.evaluation.own import compare_rankers, own_judgements
from klsa_search.evaluation.rankings import DEPTH, rank_best
from klsa_search.evaluation.record import RunRecord, read_record, record_run, write_record
from klsa_search.evaluation.replaying import Replayed, build_as_recorded, refuse_other_files, replay
from klsa_search.evaluation.runs import Ranking, distinct_scores, read_run, recorded
from klsa_search.evaluation.significance import (
    confidence_interval,
    effect_size,
    holm,
    paired_t_test,
    randomisation_test,
)
from klsa_search.evaluation.systems import (
    ALL_SYSTEMS,
    DEFAULT_SYSTEM,
    SYSTEMS,
    System,
    judge_runs,
    judge_systems,
)
from klsa_search.evaluation.tuning import HeldOut, Tuning, tune, tune_by_halves

__all__ = [
    "ALL_SYSTEMS",
    "DEFAULT_SYSTEM",
    "DEPTH",
    "MEASURES",
    "SYSTEMS",
    "TIE",
    "Compared",
    "Comparison",
    "Contrast",
    "Forecast",
    "Grid",
    "HeldOut",
    "Judge",
    "Measured",
    "Ranking",
    "Replayed",
    "RunRecord",
    "System",
    "Tuning",
    "build_as_recorded",
    "compare",
    "compare_rankers",
    "confidence_interval",
    "distinct_scores",
    "draw_differences",
    "draw_grid",
    "effect_size",
    "forecast",
    "holm",
    "judge_runs",
    "judge_systems",
    "measure_grid",
    "own_judgements",
    "paired_t_test",
    "randomisation_test",
    "rank_best",
    "read_record",
    "read_run",
    "record_run",
    "recorded",
    "refuse_other_files",
    "replay",
    "tune",
    "tune_by_halves",
    "write_record",
]
