"""The reasons for which tests may be skipped."""

import pytest

from tests.support.skips import reason_to_fail


@pytest.fixture(autouse=True)
def nothing_required(monkeypatch):
    monkeypatch.delenv("KLSA_REQUIRE", raising=False)


def test_only_reasons_of_the_table_are_allowed():
    assert reason_to_fail("Node.js is not installed") is None
    assert "not in tests/support/skips.py" in reason_to_fail("it is late")


def test_required_tests_may_not_be_skipped(monkeypatch):
    monkeypatch.setenv("KLSA_REQUIRE", "node,browser")
    assert "asks for node" in reason_to_fail("Node.js is not installed")
    assert reason_to_fail("needs pandas") is None
    monkeypatch.setenv("KLSA_REQUIRE", "nodes")
    assert "unknown kinds ['nodes']" in reason_to_fail("needs pandas")


def test_a_run_fails_by_a_skip_that_is_not_allowed(pytester, monkeypatch):
    """Of a test, of its fixture, and of a whole module."""
    pytester.makeconftest("pytest_plugins = ['tests.support.skips']")
    pytester.makepyfile(
        test_all="import pytest; pytest.skip('it is late', allow_module_level=True)",
        test_some="""
            import pytest

            @pytest.fixture
            def late():
                pytest.skip("it is late")

            def test_with_fixture(late): pass
            def test_call(): pytest.skip("it is late")
            def test_allowed(): pytest.skip("Node.js is not installed")
            @pytest.mark.skip(reason="it is late")
            def test_marked(): pass
        """,
    )
    command = ("-p", "no:randomly", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    pytester.runpytest_inprocess(*command).assert_outcomes(failed=1, errors=3, skipped=1)
