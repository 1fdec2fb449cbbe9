"""HTTP as bytes: connections, their bounds, and requests too plain for a parser."""
