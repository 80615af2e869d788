"""A helper file of the project's own (``helper_user``): what is found in it is at its own line."""


def is_large(t):
    return bool(t.abs().max() > 10)  # expect: MP101 `bool(t.abs().max() > 10)`


def scaled(t, by=2.0):
    return t * by
