"""What is known of callables, operators and their arguments: each fact is written once."""
