"""Values of CSV are quoted wherever a spreadsheet may end a line."""

import csv
import io

import pytest

from klsa_search.search.parts.exports import csv_of


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("sign", ["\r", "\n", "\r\n"])
def test_no_value_begins_a_line(line_end, sign):
    value = f"a{sign}=HYPERLINK(1)"
    text = csv_of([[value, 1], ["b", 2]], line_end)
    assert text == f'"{value}",1{line_end}b,2{line_end}'
    assert list(csv.reader(io.StringIO(text, newline=""))) == [[value, "1"], ["b", "2"]]
