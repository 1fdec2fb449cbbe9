"""Search that learns the meaning of words from your own documents."""
