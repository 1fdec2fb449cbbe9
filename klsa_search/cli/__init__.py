"""Commands: panes of glass over the engine; they parse, call and print."""
