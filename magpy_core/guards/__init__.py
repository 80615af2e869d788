"""Guards: whether a capture is valid for a call. The kinds of guard, generated Python, and explanations of failures."""
