"""Guards: when is a capture valid again? Guard IR, generated Python, and the explanation of a failure."""
