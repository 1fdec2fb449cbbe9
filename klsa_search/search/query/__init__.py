"""The query language: from the text of a query to its terms, filters and interpretation."""
