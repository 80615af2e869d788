"""Every test runs with the verifier of reference graphs on, in this process and in the programs that it starts."""

import os

os.environ.setdefault("MAGPY_VERIFY", "1")
