"""An index is not used in a forked child, but opened there."""

import os

import pytest

from klsa_search import build, open_index
from klsa_search.errors import StoreError
from tests.search.conftest import DOCUMENTS
from tests.support.forked import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_index_opened_before_a_fork_is_refused_in_the_child(tmp_path, partitions):
    index = build(
        DOCUMENTS, name="t", home=tmp_path, dimensions=2, partitions=partitions, workers=1
    )
    snapshot = index.snapshot()
    assert index.search("wing").hits  # compiles here, not in the child

    def child():
        for opened in (index, snapshot):
            with pytest.raises(StoreError, match=r"index `t` was opened before .* forked"):
                opened.search("wing")
        with pytest.raises(StoreError, match="forked"):
            index.add([{"id": "new", "text": "A wing."}])
        with open_index(tmp_path / "t") as here:
            assert here.search("wing").hits
            assert here.document("b1").id == "b1"

    assert in_child(child) == 0
    assert index.search("wing").hits
    index.close()
