"""The query language: from the text of a query to what is ranked by, and what may be answered."""
