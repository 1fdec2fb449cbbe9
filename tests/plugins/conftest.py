import pytest

from tests.support.plugins import forget, use, write_template


@pytest.fixture
def template(tmp_path, monkeypatch):
    """The template of plug-ins, installed."""
    use(monkeypatch, *write_template(tmp_path / "site"))
    yield
    forget()
