"""CSV as pandas, R, Excel and help desks write it."""

import pytest

from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError
from klsa_search.search.parts.exports import csv_of


def read(tmp_path, content, name="x.csv", **reading):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = open_collection(path, **reading)
    return [(d.id, d.title, d.text, dict(d.metadata)) for d in source.documents()], source


ROWS = [("0", "Pump", "It leaks", {}), ("1", "Valve", "Stuck", {})]


@pytest.mark.parametrize(
    "content",
    [
        ",title,text\n0,Pump,It leaks\n1,Valve,Stuck\n",
        "Unnamed: 0,title,text\n0,Pump,It leaks\n1,Valve,Stuck\n",
        '"","title","text"\n"0","Pump","It leaks"\n"1","Valve","Stuck"\n',
        '"title","text"\n"0","Pump","It leaks"\n"1","Valve","Stuck"\n',  # write.table of R
        '"title" "text"\n"0" "Pump" "It leaks"\n"1" "Valve" "Stuck"\n',
        "id title  text\n0  Pump   'It leaks'\n1  Valve  Stuck\n".replace("'", '"'),
        ";title;text\r\n0;Pump;It leaks\r\n1;Valve;Stuck\r\n",
        "id,title,text,\n0,Pump,It leaks,\n1,Valve,Stuck,\n",
        "id,title,text,,\n0,Pump,It leaks,, \n1,Valve,Stuck,,\n",
        "id,title,text\n0,Pump,It leaks,,\n1,Valve,Stuck\n",
        "id,title,text\n\n0,Pump,It leaks\n,,\n , ,\n1,Valve,Stuck\n\n,,\n",
        '\ufeffid, title, text\n0, "Pump", "It leaks"\n1, Valve, Stuck\n',
        'id; title; text\n0; "Pump"; "It leaks"\n1; "Valve"; "Stuck"\n',
        "id, title, text\n0, Pump, It leaks\n1, Valve, Stuck\n",
        "\ttitle\ttext\n0\tPump\tIt leaks\n1\tValve\tStuck\n",
        "id,title,text\r0,Pump,It leaks\r1,Valve,Stuck\r",  # of Excel for the Mac
        "id;title;text\r0;Pump;It leaks\r1;Valve;Stuck",
        "id\ttitle\ttext\r0\tPump\tIt leaks\r1\tValve\tStuck\r",
        "id,title,text\r0,Pump,It leaks\r1,Valve,Stuck\r".encode("utf-16"),
        "id^title^text\n0^Pump^It leaks\n1^Valve^Stuck\n",
        "---\n|id |title |text    |\n---\n|0  |Pump  |It leaks|\n|1  |Valve |Stuck  |\n",
        "| id | title | text |\n|:--|:---:|---|\n| 0 | Pump | It leaks |\n| 1 | Valve | Stuck |\n",
        "+--+\n| id | title |text |\n+--+---+\n|0 | Pump | It leaks |\n|1 | Valve | Stuck |\n",
    ],
)
def test_tables_of_other_programs_are_read(tmp_path, content):
    name = "x.tsv" if "\t" in str(content) else "x.csv"
    assert read(tmp_path, content, name)[0] == ROWS


@pytest.mark.parametrize(
    "content",
    [
        "id,title,text\n1,Pump,It leaks, badly\n2,Valve,Stuck, again\n",
        "id,title,text\n1,Pump,leaks,badly\n2,Valve,stuck,again\n",
        "sku,title,text\nA,Pump,It leaks, badly\nB,Valve,Stuck, again\n",
    ],
)
def test_a_text_with_a_comma_is_not_read_as_names_of_rows(tmp_path, content):
    with pytest.raises(CollectionError, match="4 cells under a header of 3"):
        read(tmp_path, content)


def test_names_of_rows_beside_a_column_of_ids_are_read(tmp_path):
    found, source = read(tmp_path, "id\ttext\n1\tx\tIt leaks\n2\ty\tStuck\n", "x.tsv")
    assert [row[:3] for row in found] == [("x", "", "It leaks"), ("y", "", "Stuck")]
    assert any("the first cells are read as row names" in note for note in source.notes)


def test_a_counter_is_the_id_only_if_it_is_unique_and_no_other_column_is(tmp_path):
    found, source = read(tmp_path, ",text\n0,a\n1,b\n")
    assert [row[0] for row in found] == ["0", "1"]
    assert "'column_1' as id" in source.notes[0]
    assert source.options == {"columns": {"id": "column_1"}}
    found, source = read(tmp_path, ",text\n0,a\n0,b\n")
    assert [(row[0], row[3]) for row in found] == [
        ("1", {"column_1": "0"}),
        ("2", {"column_1": "0"}),
    ]
    assert source.numbered
    found, source = read(tmp_path, ",id,text\n0,x,a\n1,y,b\n")
    assert [(row[0], row[3]) for row in found] == [
        ("x", {"column_1": "0"}),
        ("y", {"column_1": "1"}),
    ]
    assert source.notes == [f"{tmp_path}/x.csv: columns without a name are called column_1"]


@pytest.mark.parametrize(
    "name",
    [
        "Ticket ID",
        "ticket_id",
        "orderId",
        "Ticket No.",
        "Nr.",
        "Part #",
        "Key",
        "SKU",
        "Bestell-Nr",
        "N°",
        "Número",
        "番号",
    ],
)
def test_a_first_column_of_ids_is_the_id_if_its_values_differ(tmp_path, name):
    found, source = read(tmp_path, f"{name},title,text\nA-1,Pump,a\nA-2,Valve,b\n")
    assert [row[0] for row in found] == ["A-1", "A-2"]
    assert f"using column {name!r} as id" in source.notes[0]
    found, source = read(tmp_path, f"{name},title,text\nA-1,Pump,a\nA-1,Valve,b\n")
    assert [(row[0], row[3]) for row in found] == [("1", {name: "A-1"}), ("2", {name: "A-1"})]
    assert f"column {name!r} is not used as ID" in source.notes[0]
    found, source = read(tmp_path, f"title,{name},text\nPump,A-1,a\nValve,A-2,b\n")
    assert [row[0] for row in found] == ["1", "2"]
    assert f"column {name!r} is not used as ID" in source.notes[0]


@pytest.mark.parametrize("name", ["", "No."])
def test_files_of_a_folder_may_count_their_rows_alike(tmp_path, name):
    for file in ("a.csv", "b.csv"):
        (tmp_path / file).write_text(f"{name},title,text\n1,Pump,a\n2,Valve,b\n")
    source = open_collection(tmp_path)
    assert len({document.id for document in source.documents()}) == 4


@pytest.mark.parametrize("name", ["paid", "Grid", "Phone", "Candidate"])
def test_other_first_columns_are_metadata(tmp_path, name):
    found, source = read(tmp_path, f"{name},title,text\n1,Pump,a\n2,Valve,b\n")
    assert [row[3] for row in found] == [{name: "1"}, {name: "2"}]
    assert not source.notes


def test_columns_without_a_name_are_kept_where_they_have_values(tmp_path):
    found, source = read(tmp_path, "id,text,,\n1,a,,x\n2,b,,\n")
    assert [row[3] for row in found] == [{"column_4": "x"}, {}]
    assert "called column_4" in source.notes[0]


def test_columns_with_the_same_name_are_a_list(tmp_path):
    export = (
        "Summary,Issue key,Labels,Labels,Labels,Description,Comment,Comment\n"
        "Pump,K-1,a,,b,It leaks,first,second\nValve,K-2,c,,,Stuck,,\n"
    )
    columns = {"id": "Issue key", "title": "Summary", "text": ["Description", "Comment"]}
    found, _ = read(tmp_path, export, columns=columns)
    assert found == [
        ("K-1", "Pump", "It leaks\n\nfirst\nsecond", {"Labels": ["a", "b"]}),
        ("K-2", "Valve", "Stuck", {"Labels": "c"}),
    ]
    with pytest.raises(CollectionError, match="columns 1 and 2 have the same name 'id'"):
        read(tmp_path, "id,id,text\n1,2,a\n")


def test_a_cell_too_many_is_still_an_error(tmp_path):
    with pytest.raises(CollectionError, match="4 cells under a header of 3: no column for 'c'"):
        read(tmp_path, "id,title,text\n1,a,b,c\n2,a,b\n")
    with pytest.raises(CollectionError, match="none for column 'text'"):
        read(tmp_path, "id,title,text\n1,a\n")


def test_a_row_may_end_before_columns_of_metadata(tmp_path):
    found, source = read(tmp_path, "id,title,text,tags,\n1,a,b\n2,c,d,x,y\n3,e,f,z\n")
    assert [row[2] for row in found] == ["b", "d", "f"]
    assert [row[3].get("tags") for row in found] == ["", "x", "z"]
    assert source.notes[0].endswith("blank cells for columns that rows end before")
    with pytest.raises(
        CollectionError, match="2 cells under a header of 4: none for column 'text'"
    ):
        read(tmp_path, "id,title,text,tags\n1,a\n")
    with pytest.raises(CollectionError, match="none for column 'Notes'"):
        read(tmp_path, "id,x,Notes\n1,a\n", columns={"text": "Notes"})


def test_a_blank_before_a_word_in_quotes_is_text(tmp_path):
    found, _ = read(tmp_path, 'id,text\n1, "big" pump\n2,valve\n')
    assert found[0][2] == ' "big" pump'


@pytest.mark.parametrize(
    "content",
    [
        'id\ttitle\ttext\n0\tPump\t"It\nleaks"\n1\tValve\tStuck\n',
        'id\ttitle\ttext\n0\tPump\t"It, leaks"\n1\tValve\tStuck\n',
        'id\ttitle\ttext\n0\tPump\t"It ""leaks"""\n1\tValve\tStuck\n',
        '"id"\t"title"\t"text"\n0\tPump\t"It\tleaks"\n1\tValve\tStuck\n',
    ],
)
def test_quotes_of_tsv_are_read_if_they_have_a_reason(tmp_path, content):
    rows, source = read(tmp_path, content, "x.tsv")
    assert [row[2][:2] for row in rows] == ["It", "St"]
    assert '"' not in rows[0][2].replace('"leaks"', "")
    assert source.notes == [f"{tmp_path}/x.tsv: read as TSV with quoted cells"]


@pytest.mark.parametrize(
    "text", ['"It" leaks', 'It 3" leaks', '"leaks"', '"It, "leaks" twice"', '"a, b" or "c"']
)
def test_other_quotes_of_tsv_are_text(tmp_path, text):
    rows, source = read(tmp_path, f"id\ttitle\ttext\n0\tPump\t{text}\n", "x.tsv")
    assert (rows[0][2], source.notes) == (text, [])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "sep=;\n"])
def test_lines_of_a_report_before_the_header_are_left_out(tmp_path, mark, line_end):
    lines = f"{mark}Open tickets;;\nGenerated: 2025-12-28\n\nid;title;text\n"
    lines += "0;Pump;It leaks\n1;Valve;Stuck\n"
    rows, source = read(tmp_path, lines.replace("\n", line_end))
    assert rows == ROWS
    assert "2 lines before the header left out" in source.notes[0]
    rows, _ = read(
        tmp_path, lines.replace("title;text", "a;b"), columns={"title": "a", "text": "b"}
    )
    assert rows == ROWS


def test_a_missing_header_is_suspected(tmp_path):
    for rows in ("1,Pump,The pump leaks.\n", "It leaks,bad\nIt runs,good\n", "It leaks\nIt runs\n"):
        with pytest.raises(CollectionError, match="if this line is a document, add one above it"):
            read(tmp_path, rows)


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("Nr;Betreff;Beschreibung", "Pump"),
        ("Issue key;Summary;Description", "Pump"),
        ("Vorgangsschlüssel;Zusammenfassung;Beschreibung", "Pump"),
        ("Clé de ticket;Résumé;Description", "Pump"),
        ("id;Titel;Text", "Pump"),
        ("id;TÍTULO;conteúdo", "Pump"),
        ("id;件名;本文", "Pump"),
        ("id;name;text", ""),
        ("id;ämne;beskrivning", "Pump"),
        ("id;předmět;popis", "Pump"),
        ("id;标题;內容", "Pump"),
        ("id;question;answer", "Pump"),
        ("number;short_description;description", "Pump"),
        ("id;title;abstract", "Pump"),
    ],
)
def test_common_names_of_columns(tmp_path, header, title):
    rows, _ = read(tmp_path, f"{header}\nK-1;Pump;It leaks\n")
    assert rows[0][:3] == ("K-1", title, "It leaks")


@pytest.mark.parametrize(
    ("header", "used"),
    [
        ("id,title,notes,abstract", 3),
        ("Key,Title,Abstract Note,Notes", 2),
        ("id,question,answer,notes", 2),
        ("id,title,passage,transcript", 2),
    ],
)
@pytest.mark.parametrize("cells", [["a", "b"], [f"This is a long text of {it}" for it in "ab"]])
def test_of_several_second_names_for_texts_the_first_is_used(tmp_path, header, used, cells):
    rows, _ = read(tmp_path, f"{header}\n1,Pump,{','.join(cells)}\n")
    assert [row[:3] for row in rows] == [("1", "Pump", cells[used - 2])]


@pytest.mark.parametrize(
    "rows",
    [
        ",Hose,5,It bends\n1,Valve,4,Stuck\n",
        ",Hose,5,\n1,Valve,4,Stuck\n",
        ",Total,7,\n1,Valve,4,Stuck\n",
        ",Hose,,\n",
        ",Hose,5,\n",
        ",Total,,\n",
        ",Total,7,all\n",
        ",,2020-01-01,\n",
        ",Total,7,\n",
        ",,7,\n,,7,\n",
    ],
)
def test_a_document_without_an_id_is_refused(tmp_path, rows):
    with pytest.raises(CollectionError, match="id is blank"):
        read(tmp_path, f"id,title,price,text\n0,Pump,3,It leaks\n{rows}")


def test_a_sentence_is_no_header(tmp_path):
    table = "Source,Extracted text\nid,title,abstract\n1,pump,good\n2,valve,bad\n"
    assert [row[:2] for row in read(tmp_path, table)[0]] == [("1", "pump"), ("2", "valve")]
    table = "Report,Full text\nid,title,abstract\n1,pump,good\n2,valve,bad\n"
    assert [row[:2] for row in read(tmp_path, table)[0]] == [("1", "pump"), ("2", "valve")]
    for first in ("I bought this for its content", "Great product description"):
        for name, tab in (("x.csv", ","), ("x.tsv", "\t")):
            with pytest.raises(CollectionError, match="if this line is a document, add one above"):
                read(tmp_path, f"{first}{tab}5\nGood value{tab}4\nBad text{tab}1\n", name)


def test_lines_below_a_table_are_left_out(tmp_path):
    codes = "Case No.,Title,Text\nINC-1,Pump,It leaks\n\nConfidential\n"
    assert [row[0] for row in read(tmp_path, codes)[0]] == ["INC-1"]
    table = "id,title,text\n0,Pump,It leaks\n1,Valve,Stuck\n"
    left_out = "left out 2 lines below the table, from line"
    found, source = read(tmp_path, table + "\n\nMade by Ann\nCopyright 2024\n")
    assert found == ROWS
    assert source.notes == [f"{tmp_path}/x.csv: {left_out} 6, 'Made by Ann'"]
    found, _ = read(tmp_path, "id,title,text\n0,Pump,It leaks\n\n7,,\n1,Valve,Stuck\n")
    assert [row[0] for row in found] == ["0", "7", "1"]
    with pytest.raises(CollectionError, match=":4: 1 cells under a header of 3"):
        read(tmp_path, table + "2\n")  # an export that was cut short
    with pytest.raises(CollectionError, match=":5: 1 cells under a header of 3"):
        read(tmp_path, table + "\n2\n3,Hose,x\n")


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ("Item No,Title,Text,Price\n1,a,b c,1.5\n2,d,e f,2.5\n,,Total,4.0\n", "Total"),
        ("Nr;Titel;Text;Preis\n1;a;b c;1,50\n2;d;e f;2,50\n;;Summe;€ 1.004,00\n", "Summe"),
        (",title,text,n\n1,a,b c,1\n2,d,e f,2\n,Sum,,3\n,VAT,,1\n,,,4\n\nBy Ann\n", "Sum"),
    ],
)
def test_totals_at_the_end_are_left_out_with_a_note(tmp_path, table, label):
    found, source = read(tmp_path, table)
    assert [row[:3] for row in found] == [("1", "a", "b c"), ("2", "d", "e f")]
    assert any(f"below the table, from line 4, {label!r}" in note for note in source.notes)
    columns = source.options.get("columns")  # as an index stores them to read the file again
    assert read(tmp_path, table, columns=columns)[0] == found


def test_rows_with_an_id_are_documents_even_if_they_are_labelled_as_totals(tmp_path):
    found, _ = read(tmp_path, "id,title,text,n\na,b,c d,1\nb,e,f g,2\nTotal,,,3\n")
    assert [row[0] for row in found] == ["a", "b", "Total"]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('="00123"', "00123"),  # so that Excel keeps the zeros
        ('"=""00123"""', "00123"),
        ('"=""a """"b"""""""', 'a "b"'),
        ("=A1+1", "=A1+1"),
        ("'-5", "-5"),  # so that Excel computes nothing
        ("'=1+1", "=1+1"),
        ("'+49 30 1", "+49 30 1"),
        ("'@ann", "@ann"),
        ("'tis", "'tis"),
        ("'00123", "'00123"),
        ("'-v' lists all", "'-v' lists all"),
        ("' =1+1", " =1+1"),
    ],
)
def test_marks_that_keep_a_cell_a_text_are_no_part_of_it(tmp_path, cell, value):
    found, _ = read(tmp_path, f"id,text,code\n{cell},a,{cell}\n")
    assert found == [(value, "", "a", {"code": value})]


def test_results_as_csv_are_read_as_they_were(tmp_path):
    texts = ["=1+1", " =1+1", "\tA", "\nA", "＝1", "-5", "@ann", "-don't", "='a'", "a"]
    rows = csv_of([["id", "text"], *enumerate(texts)])
    assert [row[2] for row in read(tmp_path, rows)[0]] == texts


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('{"t": "It\\nLeaks"}', '{"t": "It\\nLeaks"}'),
        ('[{"t": "It\\nLeaks"}]', '[{"t": "It\\nLeaks"}]'),
        ('["It\\nLeaks"]', ["It\nLeaks"]),
    ],
)
def test_line_ends_in_json_remain(tmp_path, cell, value):
    found, _ = read(tmp_path, "id\ttext\tmore\n1\ta\t" + cell + "\n", "x.tsv")
    assert found == [("1", "", "a", {"more": value})]


def test_line_ends_in_a_cell_beyond_the_header_are_refused_as_others(tmp_path):
    with pytest.raises(CollectionError, match=r"x\.csv:2"):
        read(tmp_path, "id,text\n1,a,It leaks.\\nOh\n2,b\n")


def test_missing_values_of_mysql_with_escapes_are_missing(tmp_path):
    content = 'id,text,n,m\n\\N,"a \\"b\\"",\\N,\\N\n2,"c \\N, d",5,\\N\n'
    found, _ = read(tmp_path, content.replace("\\N,", "1,", 1))
    assert found == [
        ("1", "", 'a "b"', {"n": "\\N", "m": "\\N"}),
        ("2", "", "c N, d", {"n": "5", "m": "\\N"}),
    ]


@pytest.mark.parametrize(
    ("name", "cells", "texts"),
    [
        ("x.csv", ("It leaks.\\nReplace it.", "a"), ["It leaks.\nReplace it.", "a"]),
        ("x.csv", ("It leaks.\\r\\n\\r\\nOh", "\\\\o/"), ["It leaks.\n\nOh", "\\o/"]),
        ("x.tsv", ("it leaks\\nagain", "\\N"), ["it leaks\nagain", ""]),
        ("x.csv", ("$\\nabla \\times$", "a"), None),
        ("x.csv", ("Read C:\\new\\Table", "a"), None),
        ("x.csv", ("It leaks.\\nAgain \\alpha", "a"), None),
        ("x.csv", ('"It\nleaks.\\nAgain"', "a"), None),
        ("x.csv", ("[gallery]\\nIt leaks.", "a"), ["[gallery]\nIt leaks.", "a"]),
        ("x.csv", ("In C \\n ends a line", "a"), None),
        ("x.csv", ("^\\t*\\n+", "(\\n|\\r)"), None),
    ],
)
def test_line_ends_that_are_written_as_signs_are_line_ends(tmp_path, name, cells, texts):
    sign = "\t" if name.endswith("tsv") else ","
    rows = "".join(f"{number}{sign}{cell}\n" for number, cell in enumerate(cells))
    found, source = read(tmp_path, f"id{sign}text\n{rows}", name)
    expected = texts or [cell.strip('"') for cell in cells]
    assert [row[2] for row in found] == expected
    assert any(r"read \n in the cells of 'text'" in note for note in source.notes) == bool(texts)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("{red,big}", "{}", "{red}"), [["red", "big"], [], ["red"]]),
        (('"{""a, b"",NULL}"', "{x}", "{1}"), [["a, b"], ["x"], ["1"]]),
        (("{4c1b-2}", "{4c1b-3}", "{x}"), ["{4c1b-2}", "{4c1b-3}", "{x}"]),  # GUIDs
        (('"{""a"": 1}"', "{}", "{}"), ['{"a": 1}', "{}", "{}"]),
    ],
)
def test_arrays_of_postgresql_are_lists(tmp_path, cells, values):
    rows = "".join(
        f'{number},a,"{cell}"\n' if '"' not in cell and "," in cell else f"{number},a,{cell}\n"
        for number, cell in enumerate(cells)
    )
    found, _ = read(tmp_path, f"id,text,tags\n{rows}")
    assert [row[3]["tags"] for row in found] == values


def test_documents_without_title_and_text_are_reported(tmp_path):
    table = "Handle,Title,Body (HTML),Price\nmug,Mug,<p>White</p>,7\nmug,,,8\nmug,,,9\n"
    found, source = read(tmp_path, table)
    assert [row[2] for row in found] == ["<p>White</p>", "", ""]
    assert (
        source.notes[-1] == f"{tmp_path}/x.csv:3: no title and no text, in this and 1 more record"
    )


@pytest.mark.parametrize(
    "rows",
    [
        ",g,h i,4\n",
        ",Hose,It bends,\n",
        ",,a note,\n",
        ",,a note,2024-01-03\n",
        ",,It leaks at the valve that was replaced in May,4\n",
        ",,Total,4\n3,g,h i,4\n",
        ",,pump,4\n,,valve,5\n,,hose,6\n,,fan,7\n",
    ],
)
def test_other_rows_without_an_id_are_documents(tmp_path, rows):
    found, source = read(tmp_path, f"Item No,Title,Text,Price\n1,a,b c,1\n2,d,e f,2\n{rows}")
    assert len(found) == 2 + rows.count("\n")
    assert "column 'Item No' is not used as ID" in source.notes[0]


def test_a_column_that_may_be_blank_tells_no_totals(tmp_path):
    table = "Item No,Title,Text,Price\n1,Pump,leaks,3\n2,Valve,,4\n,Hose,,5\n"
    assert [row[1] for row in read(tmp_path, table)[0]] == ["Pump", "Valve", "Hose"]


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ("text,a,b\n\nfirst text here,,\n\nsecond text,,\n\nthird text only,,\n", 3),
        ("text,a,b\nhello world,1,2\n\nfoo bar baz,,\n\nfoo bar baz two,,\n", 3),
        ("id,title,text,tag\nINV 1,A,x,y\n\nINV 3,,,\n", 2),
        ("case,title,text\nINV 1,A,x\n\nINV 2,B,y\n\nINV 3,,\n", 3),
        ("case,title,text\nINV 1,A,x\n\n" + "INV 3,,\n" * 50, 51),
    ],
)
def test_rows_of_one_cell_are_documents_if_they_may_be(tmp_path, content, count):
    assert len(read(tmp_path, content)[0]) == count


@pytest.mark.parametrize("lists", ['"[""red"", ""big""]"', "\"['red', 'big']\""])
def test_cells_of_lists_are_lists(tmp_path, lists):
    found, source = read(tmp_path, f"id,text,tags,note\n1,a,{lists},[b]\n2,c,[],d\n3,e,,\n")
    assert [row[3]["tags"] for row in found] == [["red", "big"], [], ""]
    assert found[0][3]["note"] == "[b]"
    assert any("read the cells of 'tags' as lists" in note for note in source.notes)


def test_ids_titles_and_texts_are_no_lists(tmp_path):
    found, source = read(tmp_path, 'id,title,text\n[1],[2],"[1, 2]"\n')
    assert (found, source.notes) == ([("[1]", "[2]", "[1, 2]", {})], [])
    assert read(tmp_path, "Nr.,text\n[1],a\n")[0] == [("[1]", "", "a", {})]


def test_tags_are_no_prose(tmp_path):
    rows = "".join(f"a,\"['kitchen', 'cups and mugs', 'gift ideas {n}']\"\n" for n in range(3))
    found, _ = read(tmp_path, f"title,tags\n{rows}")
    assert (found[0][2], len(found[0][3]["tags"])) == ("", 3)


def test_cells_of_numpy_arrays_are_texts(tmp_path):
    found, _ = read(tmp_path, "id,text,tags\n1,a,['red' 'big']\n2,b,['it''s' 'x']\n")
    assert [row[3]["tags"] for row in found] == ["['red' 'big']", "['it''s' 'x']"]
    found, _ = read(tmp_path, "id;text;tags\n1;a;[u'it\\'s', '', 5]\n2;b;['c',]\n")
    assert [row[3]["tags"] for row in found] == [["it's", "", 5], ["c"]]


@pytest.mark.parametrize("cell", ["NA", "NULL", "\\N", "NaN", "None", "#N/A"])
def test_a_cell_without_a_text_has_none(tmp_path, cell):
    found, source = read(tmp_path, f"id,title,text,note\n1,{cell},{cell},{cell}\n2,a,b,c\n")
    assert found[0] == ("1", cell, "", {"note": cell})
    note = (
        f"{tmp_path}/x.csv:2: a text is only NA, NULL or the like, which is blank, in this record"
    )
    assert note in source.notes


def test_questions_are_names_of_columns(tmp_path):
    answers = "At 9,Answer the phone more quickly\nAt 10,Mend the pump on time please\n"
    found, _ = read(tmp_path, f"Time,What could we do better than now?\n{answers}")
    assert found[0][2] == "Answer the phone more quickly"


@pytest.mark.parametrize(
    ("header", "rows", "key"),
    [
        (",Ticket-Nr.,text", ["1,INC-20,a b", "2,INC-21,c d"], "Ticket-Nr."),
        (",text,order id", ["0,a b,x7", "1,c d,x8"], "order id"),
        (",Ticket-Nr.,text", ["1,INC-20,a b", "2,INC-20,c d"], "column_1"),
        (",Ticket-Nr.,text", ["1,INC-20,a b", "2,,c d"], "column_1"),
        (",Ticket-Nr.,text", ["7,INC-20,a b", "9,INC-21,c d"], "column_1"),
        (",Ticket-Nr.,Part #,text", ["1,INC-20,p1,a b", "2,INC-21,p2,c d"], "column_1"),
        (",Ticket-Nr.,Part #,text", ["1,INC-20,p1,a b", "2,INC-21,p1,c d"], "Ticket-Nr."),
        (",city,text", ["1,Rome,a b", "2,Oslo,c d"], "column_1"),
        (",paid,text", ["1,10,a b", "2,11,c d"], "column_1"),
        ("Row no,Ticket-Nr.,text", ["1,INC-20,a b", "2,INC-21,c d"], "Row no"),
    ],
)
def test_a_column_of_ids_wins_over_a_nameless_counter(tmp_path, header, rows, key):
    found, source = read(tmp_path, "\n".join([header, *rows, ""]))
    at = 0 if key == "column_1" else header.split(",").index(key)
    assert [row[0] for row in found] == [row.split(",")[at] for row in rows]
    assert f"{key!r} as id" in source.notes[0]
