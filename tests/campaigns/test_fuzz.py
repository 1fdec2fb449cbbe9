"""Random requests get responses of the documented form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.service.schemas.search_requests import SearchRequest
from tests.service.conftest import failure_of

pytestmark = pytest.mark.slow

numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([0, 1, 10, 0.5, 10_000]))
values = st.one_of(st.text(max_size=30), numbers, st.sampled_from(["klsa", "bm25", "lsi", "tiny"]))
names = st.sampled_from(sorted(SearchRequest.model_fields))
questions = st.dictionaries(st.one_of(names, st.text(max_size=5)), values, max_size=7)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), values),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
bodies = st.one_of(
    st.dictionaries(st.one_of(names, st.text(max_size=5)), json_values, max_size=7), json_values
)


def check(response):
    assert response.status_code in (200, 400, 404, 422), response.text
    json.loads(response.text, parse_constant=pytest.fail)
    if response.status_code != 200:
        failure_of(response, response.status_code)


@given(asked=questions)
def test_any_parameters_get_a_proper_answer(client, asked):
    check(client.get("/search", params={"q": "wing", **asked}))


@given(body=bodies)
def test_any_json_gets_a_proper_answer(client, body):
    if isinstance(body, dict):
        body = {"q": "wing", **body}
    check(
        client.post(
            "/search", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
    )


@given(name=st.text(max_size=20))
def test_any_document_id_gets_a_proper_answer(client, name):
    check(client.get("/documents/" + "".join(f"%{byte:02X}" for byte in name.encode())))
