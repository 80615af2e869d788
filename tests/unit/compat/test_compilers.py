"""Importing torch's compilers: it happens, once, without collections, and leaves the collector as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CHILD = """
import gc, sys
import torch
from magpy_core._compat.torch import compilers

collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
{before}
was = gc.isenabled()
assert not compilers.inductor_is_imported()
collections.clear()
compilers.{name}()
assert {module!r} in sys.modules
assert gc.isenabled() is was
assert len(collections) < 10, len(collections)  # those of the collector once it is back
compilers.{name}()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "module", "before"),
    [
        ("import_dynamo", "torch._dynamo", ""),
        pytest.param("import_inductor", "torch._inductor.compile_fx", "", marks=pytest.mark.slow),
        pytest.param("import_inductor", "torch._inductor.compile_fx", "gc.disable()", marks=pytest.mark.slow),
    ],
)
def test_an_import_without_collections(name: str, module: str, before: str) -> None:
    text = _CHILD.format(name=name, module=module, before=before)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


_TWO_THREADS = """
import importlib, os, sys, threading
import torch
from magpy_core._compat.torch import compilers, inductor_cache, inductor_options

os.environ["TORCHINDUCTOR_CACHE_DIR"] = "somewhere"

sys.setswitchinterval(1e-6)
errors = []

def work(call, *args):
    try:
        call(*args)
    except BaseException as error:
        errors.append(error)

threads = [
    threading.Thread(target=work, args=({call},)),
    threading.Thread(target=work, args=(importlib.import_module, "torch._dynamo")),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["compilers.import_inductor", "inductor_cache.has_own_folder", "lambda: inductor_options.checked({})"]
)
def test_an_import_while_another_thread_imports_its_first_part(call: str) -> None:
    text = _TWO_THREADS.replace("{call}", call)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_engine_starts_without_them() -> None:
    """Each takes from half a second to two."""
    text = "import sys, torch, magpy_core.regions.session, magpy_core.runner.monitoring; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    started = {name.split(".")[0] for name in done.stdout.split() if not name.startswith("torch")}
    heavy = [
        name
        for name in ("torch._dynamo", "torch._inductor.compile_fx", "torch.utils.flop_counter")
        if name in done.stdout.split()
    ]
    assert heavy == [] and not {"triton", "sympy"} & started
