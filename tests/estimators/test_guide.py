"""The examples of the guide run."""

import re

import pytest

from tests.conftest import ROOT
from tests.support.worlds import topic_documents

pytestmark = pytest.mark.slow

EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_example_of_the_guide_runs():
    guide = (ROOT / "docs" / "guides" / "scikit-learn.md").read_text(encoding="utf-8")
    names = {
        "texts": [f"{text} engine" for text in topic_documents()],
        "labels": ["rare" if document < 12 else "common" for document in range(48)],
    }
    examples = EXAMPLE.findall(guide)
    assert len(examples) == 7
    for example in examples:
        exec(example, names)
    assert names["search"].best_score_ > 0.9
    assert names["kernel"].pivots_[0] < 12
