"""What holds for every test: the verifier of reference graphs is on, and torch.compile is used last. A limited time
is spent on files in an order that changes with each commit.

After torch.compile has run in a process, each recording there has to look through all code for the compiler's marks.
Tests that use it are marked ``torch_compile`` and run at the end, so that the thousands of recordings before them don't.
"""

import compileall
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from magpy_core._compat.cpython.threads import leave_out_running

os.environ.setdefault("MAGPY_VERIFY", "1")  # in the programs that tests start, too
os.environ.setdefault("MAGPY_COMPILE", "foreground")  # which call is compiled does not depend on the machine's speed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes", type=float, help="start no test later than this; the files come in an order that the commit draws"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The programs that tests start find MagPy compiled to bytecode, although many of them may not write any. In a worker of
    the test runner, the thread that receives which tests to run next is none of the programs that tests record."""
    if hasattr(config, "workerinput"):
        leave_out_running()
        return
    if minutes := config.getoption("minutes"):  # the workers of the test runner inherit both
        os.environ["MAGPY_TESTS_UNTIL"] = str(time.time() + 60 * minutes)
        os.environ["MAGPY_TESTS_ORDER"] = _commit()
    for package in ("magpy_core", "lsp_server"):
        compileall.compile_dir(Path(__file__).parents[1] / package, quiet=2)


def _commit() -> str:
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout.strip()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if (order := os.environ.get("MAGPY_TESTS_ORDER")) is not None:
        files = sorted({item.path for item in items})
        random.Random(order).shuffle(files)
        place = {path: i for i, path in enumerate(files)}
        items.sort(key=lambda item: place[item.path])
    items.sort(key=lambda item: [item.get_closest_marker(name) is not None for name in ("torch_compile", "after_others")])


def pytest_runtest_setup() -> None:
    if time.time() > float(os.environ.get("MAGPY_TESTS_UNTIL", "inf")):
        pytest.skip("no time was left for it")


def _torch_has_compiled() -> bool:
    if "torch._dynamo.convert_frame" not in sys.modules:
        return False
    from magpy_core._compat.torch.dynamo import torch_has_compiled

    return torch_has_compiled()


@pytest.fixture(autouse=True)
def torch_compile_is_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _torch_has_compiled()
    yield
    if not before and _torch_has_compiled() and request.node.get_closest_marker("torch_compile") is None:
        pytest.fail("it has used torch.compile: mark it with pytest.mark.torch_compile")


@pytest.fixture
def empty_compiler_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is Inductor's cache during the test. Which instructions the processor has is found out before, and kept
    in the usual place: it takes six compilations."""
    from torch._inductor.cpu_vec_isa import valid_vec_isa_list

    valid_vec_isa_list()
    folder = tmp_path / "compiled"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    return folder


# A shell starts what it puts in the background with Ctrl-C ignored, and Python leaves it so: the tests of it need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
