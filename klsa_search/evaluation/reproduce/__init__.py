"""Reproduce: the experiments of the kernel papers, published and measured side by side."""

from klsa_search.errors import MissingExtra

try:
    import sklearn  # noqa: F401 - its absence is best told before anything else is
except ModuleNotFoundError:
    raise MissingExtra(
        "reproductions need scikit-learn, which is not installed: "
        "pip install 'klsa-search[estimators]'"
    ) from None

from klsa_search.evaluation.reproduce.charts import draw_chart
from klsa_search.evaluation.reproduce.diffusion import reproduce_diffusion
from klsa_search.evaluation.reproduce.ionosphere import reproduce_ionosphere
from klsa_search.evaluation.reproduce.medline import reproduce_medline
from klsa_search.evaluation.reproduce.report import Reproduction, Row, Value
from klsa_search.evaluation.reproduce.reuters import reproduce_reuters

__all__ = [
    "Reproduction",
    "Row",
    "Value",
    "draw_chart",
    "reproduce_diffusion",
    "reproduce_ionosphere",
    "reproduce_medline",
    "reproduce_reuters",
]
