"""Writes the table of the service's settings into its page: python -m tools.settings_page."""

from klsa_search.cli.service_options import default_of, flag_of
from klsa_search.service.settings import PREFIX, ServiceSettings
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "guides" / "run-the-service.md"
BEGIN = "<!-- made of klsa_search/service/settings.py by: python -m tools.settings_page -->\n"
END = "<!-- end -->\n"


def table():
    """One row a setting, as it is declared."""
    rows = ["| in the file | option | environment | default | |", "|---|---|---|---|---|"]
    for name, field in ServiceSettings.model_fields.items():
        option = flag_of(name, field).replace("/", "`, `")
        limits = [
            f"{word} {getattr(each, kind)}"
            for each in field.metadata
            for kind, word in (("ge", "from"), ("le", "to"))
            if hasattr(each, kind)
        ]
        told = "; ".join([field.description, *([" ".join(limits)] if limits else [])])
        rows.append(
            f"| `{name}` | `{option}` | `{PREFIX}{name.upper()}` | {default_of(field)} | {told} |"
        )
    return "\n".join(rows) + "\n"


def parts():
    """What stands before the table, the table, and what stands after it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    held, _, after = rest.partition(END)
    return before + BEGIN, held, END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + table() + after, encoding="utf-8")
