"""Write the table of scopes and routes into its page: python -m tools.scopes_page."""

from klsa_search.service.application import ROUTERS
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "api-keys.md"
BEGIN = "<!-- made of the routes of klsa_search/service by: python -m tools.scopes_page -->\n"
END = "<!-- end of scopes -->\n"


def scopes_by_operation():
    """Return the scopes of each operation by method and path, as the schema has the path."""
    return {
        (method, route.path.replace(":whole", "")): route.scopes
        for router in ROUTERS
        for route in router.routes
        for method in sorted(route.methods)
        if route.include_in_schema  # not an API of others
    }


def table():
    """Return one row for each combination of scopes, with all routes that need it."""
    operations = {}
    with_tokens = {
        (method, route.path.replace(":whole", ""))
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
        if route.tenants
    }
    for operation, scopes in scopes_by_operation().items():
        names = (*scopes, "a tenant token") if operation in with_tokens else scopes
        operations.setdefault(names, []).append("`{} {}`".format(*operation))
    rows = ["| scope | routes |", "|---|---|"]
    for scopes, routes in sorted(operations.items(), key=lambda row: (not row[0], row[0])):
        name = " or ".join(f"`{each}`" if " " not in each else each for each in scopes) or "no key"
        rows.append(f"| {name} | {', '.join(routes)} |")
    return "\n".join(rows) + "\n"


def parts():
    """Return the text before the table, the table, and the text after it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    held, _, after = rest.partition(END)
    return before + BEGIN, held, END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + table() + after, encoding="utf-8")
