"""Commands: thin interfaces that parse arguments, call the package and print."""
