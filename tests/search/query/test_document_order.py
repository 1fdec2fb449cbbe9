"""The numbers of terms and documents, which follow the order of a source, mean nothing."""

from contextlib import closing

import pytest

from klsa_search import build

TEXTS = {
    "flow": "flow",
    "flows": "flows over wings of an airplane with winglets",
    "wing": "wing spar",
    "online": "online shops of wi-fi gear",
    "on-line": "an on-line service",
    "print": "printers and a printing press",
    "code": "utf8 and getUserName",
    "river": "the river flows by a flowerbed in München",
    "cjk": "飛行機の翼",
}
QUERIES = [
    *("flow", "wing", "online", "on-line", "wifi", "utf 8", "user name", "翼", "flwo", "prnter"),
    *("fl*", "wi*", "o*", "pr* press", "flow fl*", "wing wi*", "+flow river", "wings -spar"),
    *('"flows over"', '"spar wing"', "flow OR wing", "wing NOT (spar OR press)", "title:flow"),
    *("river flow", "spar wing", "airplane wing", "+river flow", "winglet wing"),
    *("riverflow", "printing pres", "flow wing online print utf8 river zzz", "munchen", "of an"),
]


@pytest.mark.slow
def test_results_do_not_depend_on_the_order_of_documents(tmp_path):
    """Each document is the first once, so that each of its words is among the first terms."""

    def answers(ids):
        records = [{"id": id_, "title": id_, "text": TEXTS[id_]} for id_ in ids]
        with closing(build(records, name="-".join(ids)[:40], home=tmp_path, dimensions=3)) as index:
            index.set_synonyms(["gear, press"])
            for options in ({}, {"prefix": "last", "match": "all"}):
                for query in QUERIES:
                    found = index.search(query, 20, **options)
                    scores = {hit.id: pytest.approx(hit.score, rel=1e-4) for hit in found}
                    yield query, options, found.interpretation, found.total, scores

    ids = list(TEXTS)
    expected = list(answers(ids))
    for first in range(1, len(ids)):
        assert list(answers(ids[first:] + ids[:first])) == expected
