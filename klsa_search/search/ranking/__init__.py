"""Choose and combine rankings of documents."""
