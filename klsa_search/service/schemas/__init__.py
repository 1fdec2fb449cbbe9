"""What is asked and answered, as HTTP has it: models, sizes, failures."""
