"""What is told of the service: metrics and the journal."""
