"""What can be asked for: a router a module."""
