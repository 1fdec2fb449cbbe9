"""Everything that can be asked for stands in the docs."""

from klsa_search.config import Settings
from klsa_search.service.messages.searching import SearchRequest
from tests.project.test_packaging import PROJECT
from tools.reference_page import COMMANDS, PAGE, page


def test_the_page_has_what_is_declared():
    """Where this fails, `python -m tools.reference_page` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_nothing_is_left_out():
    """Of commands, options, settings and parameters: as the page is made, and as they are named."""
    text = PAGE.read_text(encoding="utf-8")
    assert COMMANDS.keys() == PROJECT["scripts"].keys()
    named = {
        option
        for command in COMMANDS.values()
        for each in getattr(command, "commands", {"": command}).values()
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }
    assert len(named) > 80
    assert not [option for option in named if f"`{option}`" not in text]
    asked = {*Settings.model_fields, *SearchRequest.model_fields}
    assert not [name for name in asked if f"`{name}`" not in text]
