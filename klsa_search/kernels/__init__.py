"""Features, the document kernel, the query kernel and postings."""
