"""Judge: runs and judgements to measures, the MAP table and Figure 1."""

from klsa_search.evaluation.figure import draw_grid
from klsa_search.evaluation.grid import Grid, measure_grid
from klsa_search.evaluation.measures import MEASURES, Judge, Measured
from klsa_search.evaluation.rankings import rank_all
from klsa_search.evaluation.runs import Ranking, recorded, told_apart
from klsa_search.evaluation.systems import SYSTEMS, System, judge_systems

__all__ = [
    "MEASURES",
    "SYSTEMS",
    "Grid",
    "Judge",
    "Measured",
    "Ranking",
    "System",
    "draw_grid",
    "judge_systems",
    "measure_grid",
    "rank_all",
    "recorded",
    "told_apart",
]
