import ast
import re

from tests.conftest import ROOT

COUNTS = re.compile(r" (documents|batches|writes|files|indexes|rules|records|rows|hits)\b")


def test_messages_count_one_thing_as_one():
    """No number is written before a plural, but for limits, and what exceeds them."""
    wrong = []
    for path in sorted((ROOT / "klsa_search").rglob("*.py")):
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = text.values if isinstance(text, ast.JoinedStr) else []
            for before, number, after in zip([None, *parts], parts, parts[1:], strict=False):
                if not isinstance(number, ast.FormattedValue) or number.format_spec is None:
                    continue
                lead = before.value if isinstance(before, ast.Constant) else ""
                behind = after.value if isinstance(after, ast.Constant) else ""
                is_large = ast.unparse(number.value).isupper() or re.search(
                    "more than|at most", behind
                )
                if not is_large and not lead.endswith("its ") and COUNTS.match(behind):
                    wrong.append(f"{path.name}:{number.lineno}{behind}")
    assert wrong == []
