import re

import pytest

from klsa_search.errors import SettingsError
from klsa_search.service.settings import PREFIX, ServiceSettings, read_settings
from tools.settings_page import parts, table


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch):
    for name in ("config", *ServiceSettings.model_fields):
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "klsa.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_an_option_counts_first_then_the_environment_the_file_and_the_default(file, monkeypatch):
    config = file('host = "10.0.0.1"\nport = 1\nallowed_hosts = ["one.example"]\n')
    monkeypatch.setenv("KLSA_PORT", "2")
    monkeypatch.setenv("KLSA_HOST", "10.0.0.2")
    settings = read_settings({"host": "10.0.0.3"}, config)
    assert (settings.host, settings.port) == ("10.0.0.3", 2)
    assert settings.allowed_hosts == ("one.example",)
    assert settings.home == ServiceSettings.model_fields["home"].default


def test_names_in_the_environment_are_parted_by_blanks(monkeypatch):
    monkeypatch.setenv("KLSA_ALLOWED_HOSTS", " one.example  two.example ")
    assert read_settings({}).allowed_hosts == ("one.example", "two.example")


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("KLSA_PORT", "")
    assert read_settings({}).port == 8000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = 70000", "{file}: port = 70000: must be at most 65535"),
        ("ports = 1", "{file}: unknown setting 'ports'; the settings are: home, host, port, "),
        ("port", "{file} is not valid TOML ("),
        (
            'cors_origins = ["https://example.org/"]',
            "{file}: cors_origins = 'https://example.org/': ",
        ),
    ],
)
def test_a_wrong_file_is_named(file, text, told):
    path = file(text)
    with pytest.raises(SettingsError, match=re.escape(told.format(file=path))) as wrong:
        read_settings({}, path)
    assert wrong.value.field is not None


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("KLSA_WRITABLE", "perhaps")
    with pytest.raises(SettingsError, match=r"KLSA_WRITABLE = 'perhaps': must be true or false"):
        read_settings({})


def test_a_file_that_is_not_there_is_not_passed_over(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_settings({}, tmp_path / "none.toml")


def test_every_setting_is_described():
    for name, field in ServiceSettings.model_fields.items():
        assert field.description, name


def test_the_page_has_the_table_of_what_is_declared():
    """Where this fails, `python -m tools.settings_page` writes it anew."""
    assert parts()[1] == table()


@pytest.mark.parametrize("name", ["backup", "follow"])
def test_a_password_in_a_url_is_refused_and_not_shown(name, monkeypatch):
    url = "sftp://me:s3cret@host/backups"
    with pytest.raises(SettingsError, match="has a password") as refused:
        read_settings({name: url})
    assert "s3cret" not in str(refused.value)
    monkeypatch.setenv(f"KLSA_{name.upper()}", url)
    with pytest.raises(SettingsError, match="has a password"):
        read_settings({})
