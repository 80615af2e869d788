"""Compiled code proves itself against eager mode, in the call that it would serve first. Key names: check, Difference,
Verdict."""

from magpy_core.verification.difference import Difference
from magpy_core.verification.first_call import Verdict, check

__all__ = ["Difference", "Verdict", "check"]
