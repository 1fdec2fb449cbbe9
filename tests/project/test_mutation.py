"""Changes of code that show which behaviour has no test."""

from tools import mutation

CODE = '''
"""A module."""
def limited(value: int = 2) -> int:
    """Return a value, at most 9."""
    if value > 9 and value:
        raise ValueError("more than 9")
    return max(value, 9)
'''


def test_changes_are_of_behaviour_and_leave_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(CODE)
    found = dict(mutation.mutants(file))
    assert {what.split(": ", 1)[1].replace("  ->  ", " becomes ") for what in found} == {
        "2 becomes 3",
        "9 becomes 10",
        "value > 9 becomes value >= 9",
        "value > 9 and value becomes value > 9 or value",
        "if value > 9 and value: becomes if not (value > 9 and value):",
        "raise ValueError('more than 9') becomes pass",
        "max(value, 9) becomes min(value, 9)",
        "return max(value, 9) becomes return",
    }
    [text] = [text for what, text in found.items() if what.endswith("value >= 9")]
    assert "if value >= 9 and value:\n        raise ValueError('more than 9')" in text
    assert '"""Return a value, at most 9."""' in text
