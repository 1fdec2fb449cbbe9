"""Run files of other systems on our documents: Lucene and a neural encoder."""
