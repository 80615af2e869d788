"""A module is there when its import has ended, whichever thread imports it."""

from __future__ import annotations

import importlib
import sys
import threading
import types
from pathlib import Path

import pytest

from magpy_core._compat.cpython.imports import FIND_AND_LOAD, FROM_LIST, LOADERS, imported
from magpy_core._compat.torch import dynamo

SLOWLY = """
import threading
import types
goes_on = threading.Event()
assert goes_on.wait(60)
value = 1
"""


@pytest.fixture
def half_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, threading.Event, threading.Thread]:
    """A module that another thread is importing until the event is set."""
    (tmp_path / "imported_slowly.py").write_text(SLOWLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "imported_slowly", raising=False)
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    thread.start()
    while thread.is_alive() and not hasattr(sys.modules.get("imported_slowly"), "goes_on"):
        thread.join(0.001)
    module = sys.modules["imported_slowly"]
    return "imported_slowly", module.goes_on, thread


def test_a_module(half_imported: tuple[str, threading.Event, threading.Thread]) -> None:
    name, goes_on, thread = half_imported
    during = imported(name)
    goes_on.set()
    thread.join()
    module = imported(name)
    assert during is None and module is not None and module.value == 1
    assert imported("no_such_module") is None


def test_a_compiler_that_another_thread_is_importing(
    half_imported: tuple[str, threading.Event, threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, goes_on, thread = half_imported
    monkeypatch.setitem(sys.modules, "torch._dynamo.convert_frame", sys.modules[name])
    monkeypatch.delitem(sys.modules, "torch._dynamo.eval_frame", raising=False)
    during = dynamo.dynamo_is_imported(), dynamo.torch_has_compiled(), dynamo.compiled_codes()
    goes_on.set()
    thread.join()
    assert during == (False, False, [])


def test_code_of_the_import_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_first").mkdir()
    (tmp_path / "imported_first" / "__init__.py").write_text("")
    (tmp_path / "imported_first" / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    ran: list[types.CodeType] = []
    sys.setprofile(lambda frame, event, arg: ran.append(frame.f_code) if event == "call" else None)
    try:
        from imported_first import part  # type: ignore[import-not-found]
    finally:
        sys.setprofile(None)
    assert ran[0] is FIND_AND_LOAD and FROM_LIST in ran and part.__name__ in sys.modules
    assert {code.co_name for code in ran if code.co_filename == LOADERS} >= {"find_spec", "exec_module", "get_data"}
    for name in ("imported_first", "imported_first.part"):
        monkeypatch.delitem(sys.modules, name)
