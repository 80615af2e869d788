"""Compiled code proves itself against eager mode, in the call that it would serve first, and in later ones. Key names:
check, Difference, Plan, Sample, Verdict."""

from magpy_core.verification.difference import Difference
from magpy_core.verification.first_call import Verdict, check
from magpy_core.verification.plan import Plan, Sample

__all__ = ["Difference", "Plan", "Sample", "Verdict", "check"]
