"""Analytics of searches and clicks: recording, storage and reports."""
