"""Mining an index with later writes: no deleted documents, and all added ones."""

import pytest

from klsa_search import build
from klsa_search.errors import DocumentNotFound, QueryError
from klsa_search.mining import KERNELS, classify, cluster, related
from klsa_search.mining.duplicates import duplicates
from klsa_search.mining.similar import similar
from tests.mining.conftest import EACH, TOPICS, documents
from tests.support.worlds import as_if_large

LATER = 4
"""Documents of each topic that come later; d5, of which d48 is a copy, is one of the first."""

OF_CUT = ("document", "latent", "gvsm")
"""Kernels that need no spectrum, which later documents have none of."""

GONE = ["d3", "d5", "d14", "d20", "d30"]


def is_later(document):
    return int(document["id"][1:]) % EACH >= EACH - LATER and document["id"] != "d49"


def topic_of(id_):
    number = int(id_[1:])
    return 0 if number == TOPICS * EACH else number // EACH


@pytest.fixture(scope="module", params=["cut", "large", "two"])
def living(request, tmp_path_factory):
    """The index of `conftest`, of which a third came later, and some went; and what is there."""
    home = tmp_path_factory.mktemp("living")
    options = {"home": home, "dimensions": 8, "latent_dimensions": 4}
    everything = documents()
    first = [one for one in everything if not is_later(one)]
    if request.param == "large":
        with as_if_large():
            index = build(first, name="large", **options)
    else:
        divided = {"partitions": 2, "workers": 1} if request.param == "two" else {}
        index = build(first, name="cut", **divided, **options)
    index.add([one for one in everything if is_later(one)])
    index.delete(GONE)
    index.add([{"id": "d6", "title": "title 6", "text": documents()[6]["text"]}])  # moved
    yield index, {one["id"] for one in everything} - set(GONE)
    index.close()


@pytest.mark.parametrize("kernel", OF_CUT)
def test_similar_documents_are_those_there_are(living, kernel):
    index, there = living
    for id_ in ["d0", "d6", "d10", "d23"]:
        found = [one.id for one in similar(index, id_, 40, kernel=kernel)]
        assert not set(found) - there
        assert len(found) == len(set(found))
        assert id_ not in found
        topics = [topic_of(one) for one in found[:4]]
        if len(index.partitions) > 1 and kernel != "latent" and id_ != "d0":
            # The row of a later document has those of its partition only.
            assert set(topics) == {topic_of(id_)}
            continue
        assert topics == [topic_of(id_)] * 4
        later = {f"d{number}" for number in range(48) if number % EACH >= EACH - LATER}
        assert set(found) & later
    with pytest.raises(DocumentNotFound):
        similar(index, "d3", kernel=kernel)


def test_kernels_that_need_a_spectrum_are_refused(living):
    index, _ = living
    for kernel in set(KERNELS) - set(OF_CUT):
        with pytest.raises(QueryError, match="does not have the eigenvectors"):
            similar(index, "d0", kernel=kernel)


def test_copies_are_found_among_what_is_there(living):
    index, _ = living
    assert duplicates(index) == ()  # d5, of which d48 is a copy, is gone
    index.add([{"id": "later", "title": "title 5", "text": documents()[5]["text"]}])
    (group,) = duplicates(index)
    assert {one.id for one in group.documents} == {"d48", "later"}
    index.delete(["later"])
    assert duplicates(index) == ()


def test_clusters_are_of_all_documents_there_are(living):
    index, there = living
    found = cluster(index, TOPICS)
    assert found.unplaced == ("d49",)
    assert sum(each.size for each in found.clusters) == len(there) - 1
    for each in found.clusters:
        assert not set(each.central) - there
        assert len({topic_of(id_) for id_ in each.central}) == 1


def test_labels_are_given_to_all_documents_there_are(living):
    index, there = living
    labels = {f"d{EACH * topic + EACH - 1}": f"topic {topic}" for topic in range(TOPICS)}
    found = {one.id: one.label for one in classify(index, labels)}
    assert found.keys() == there - labels.keys()
    wrong = [id_ for id_ in found.keys() - {"d49"} if found[id_] != f"topic {topic_of(id_)}"]
    assert wrong == []
    with pytest.raises(DocumentNotFound):
        classify(index, labels | {"d3": "topic 0"})


def test_related_terms_are_those_that_a_document_holds(living):
    index, _ = living
    word = documents()[0]["text"].split()[0]
    found = related(index, word)
    assert found
    index.add([{"id": "other", "text": "unheard word of a later document unheard"}])
    assert related(index, word) == found
    index.delete(["other"])
