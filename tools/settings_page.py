"""Write the table of service settings into its page: python -m tools.settings_page."""

from klsa_search.cli.options import default_of, flag_of
from klsa_search.service.settings import PREFIX, ServiceSettings
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "service-settings.md"
BEGIN = "<!-- made of klsa_search/service/settings.py by: python -m tools.settings_page -->\n"
END = "<!-- end -->\n"


def table():
    """Return one row for each setting, as it is declared."""
    rows = [
        "| setting | option | environment | default | description |",
        "|---|---|---|---|---|",
    ]
    for name, field in ServiceSettings.model_fields.items():
        option = flag_of(name, field).replace("/", "`, `")
        limits = [
            f"{word} {getattr(each, kind)}"
            for each in field.metadata
            for kind, word in (("ge", "from"), ("le", "to"))
            if hasattr(each, kind)
        ]
        text = "; ".join([field.description, *([" ".join(limits)] if limits else [])])
        rows.append(
            f"| `{name}` | `{option}` | `{PREFIX}{name.upper()}` | {default_of(field)} | {text} |"
        )
    return "\n".join(rows) + "\n"


def parts():
    """Return the text before the table, the table, and the text after it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    held, _, after = rest.partition(END)
    return before + BEGIN, held, END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + table() + after, encoding="utf-8")
