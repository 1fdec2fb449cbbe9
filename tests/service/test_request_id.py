import re

import pytest


def test_request_id_is_echoed_or_made(client):
    for path, status in (("/health", 200), ("/nope", 404), ("/search", 422)):
        response = client.get(path, headers={"X-Request-ID": "abc-1"})
        assert (response.status_code, response.headers["x-request-id"]) == (status, "abc-1")
    made = [client.get("/health").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in made)


@pytest.mark.parametrize("name", ["a b", "x" * 129, "é", ""])
def test_request_id_that_is_not_plain_is_replaced(client, name):
    response = client.get("/health", headers={"X-Request-ID": name.encode("latin-1")})
    assert re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])
