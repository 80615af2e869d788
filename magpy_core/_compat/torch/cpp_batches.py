"""Compiles several of Inductor's C++ kernels as one source. Key function: batched_kernels.

Inductor gives the C++ compiler each kernel as a source of its own, most of whose time passes before it comes to the kernel:
reading the headers, linking. Fifteen kernels took 8.3 s one by one, and take 1.4 s as one source.
Which kernels come together depends on nothing but the generated module, so that later processes find their library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

_MOST = 16  # so that several compilers have work with large graphs
_ONE_FUNCTION = re.compile(r'((?:\s*#include [^\n]*\n)*)\s*extern "C"\s+(void\s+kernel\(.*)', re.DOTALL)
# where parts of the bindings begin: the function for Python, the list of functions, its last entry
_FUNCTION, _METHODS, _LAST = "static PyObject* {0}_py(", "static PyMethodDef py_methods[] = {{", "{{NULL, NULL, 0, NULL}}"


class _Kernel(NamedTuple):
    argtypes: Sequence[str]
    source: str
    includes: str
    function: str


class _Bindings(NamedTuple):
    """torch's text around a kernel: what precedes the function for Python, the function, what begins the list of the
    module's functions, the entry of this one, and the rest."""

    head: str
    function: str
    list_head: str
    entry: str
    tail: str


class _Batch:
    """Kernels of one generated module that are compiled together. ``bindings``: torch's class that compiles and loads a
    source with functions for Python; ``alone`` compiles one kernel as torch does."""

    def __init__(self, bindings: Any, submit: Any, alone: Callable[[Sequence[str], str], Any]) -> None:
        self._bindings, self._submit, self._alone = bindings, submit, alone
        self._kernels: list[_Kernel] = []
        self._load: Callable[[], Any] | None = None

    @property
    def is_open(self) -> bool:
        return self._load is None

    def add(self, kernel: _Kernel) -> Callable[[], Any]:
        """A function that waits for the batch, and returns the kernel."""
        self._kernels.append(kernel)
        if len(self._kernels) == _MOST:
            self._start()
        return partial(self._kernel, len(self._kernels) - 1)

    def _start(self) -> None:
        if len(self._kernels) > 1:
            self._load = self._bindings.load_async(_source(self._bindings, self._kernels), submit_fn=self._submit)
        else:
            self._load = lambda: None

    def _kernel(self, number: int) -> Any:
        if self._load is None:
            self._start()
        assert self._load is not None
        if len(self._kernels) == 1:
            found = self._alone(self._kernels[0].argtypes, self._kernels[0].source)
            return found.result() if hasattr(found, "result") else found
        return getattr(self._load(), f"kernel_{number}")


def _parsed(argtypes: Sequence[str], source: str) -> _Kernel | None:
    """The kernel, if its source is a single function without macros, as all are but those made from templates."""
    found = _ONE_FUNCTION.fullmatch(source)
    if found is None or 'extern "C"' in found[2] or "#define" in found[2] or "#include" in found[2]:
        return None
    return _Kernel(argtypes, source, found[1], found[2])


def _source(bindings: Any, kernels: Sequence[_Kernel]) -> str:
    """All kernels, each in a namespace of its own, and a Python module with a function for each, ``kernel_0`` and so on."""
    includes = dict.fromkeys(line.strip() for kernel in kernels for line in kernel.includes.splitlines() if line.strip())
    spaces = [f"namespace kernel_{i} {{\n{kernel.function}\n}}" for i, kernel in enumerate(kernels)]
    ours = [_bindings_of(bindings, f"kernel_{i}", one.argtypes, f"kernel_{i}::") for i, one in enumerate(kernels)]
    functions, entries = [one.function for one in ours], [one.entry for one in ours]
    module = _bindings_of(bindings, "kernel", (), "")
    return "\n".join([*includes, *spaces, module.head, *functions, module.list_head, *entries, module.tail])


def _bindings_of(bindings: Any, name: str, argtypes: Sequence[str], space: str) -> _Bindings:
    arguments = ", ".join(f"parse_arg<{one.replace('const ', '')}>(args, {i})" for i, one in enumerate(argtypes))
    text = bindings.suffix_template.format(
        arg_len=len(argtypes),
        call_entry_func=space + bindings.call_entry_function.format(arguments),
        entry_func=name,
        extra_parse_arg="",
    )
    function, methods, last = (text.index(part.format(name)) for part in (_FUNCTION, _METHODS, _LAST))
    entry = methods + len(_METHODS.format())
    return _Bindings(text[:function], text[function:methods], text[methods:entry], text[entry:last], text[last:])


def _is_known(bindings: Any) -> bool:
    """Whether this version of torch writes bindings as described here."""
    template = getattr(bindings, "suffix_template", "")
    return all(template.count(part) == 1 for part in (_FUNCTION.format("{entry_func}"), _METHODS, _LAST))


@contextmanager
def batched_kernels() -> Iterator[None]:
    """Inside the block, modules that Inductor generates get their kernels from few libraries. Needs the compile lock."""
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture

    if not _is_known(CppPythonBindingsCodeCache):
        yield
        return
    compile_one, wait = AsyncCompile.cpp_pybinding, AsyncCompile.wait

    def add(self: Any, argtypes: list[str], source_code: str) -> Any:
        if (kernel := _parsed(argtypes, source_code)) is None:
            return compile_one(self, argtypes, source_code)
        state = vars(self)
        if not (batch := state.get("magpy_batch")) or not batch.is_open:
            submit = None if _is_alone() else self.submit
            batch = state["magpy_batch"] = _Batch(CppPythonBindingsCodeCache, submit, partial(compile_one, self))
        future = LambdaFuture(batch.add(kernel))
        state.setdefault("magpy_futures", []).append(future)
        return future

    def loaded(self: Any, scope: dict[str, Any]) -> None:
        ours = {id(future) for future in vars(self).pop("magpy_futures", [])}
        for name, value in [*scope.items()]:
            if id(value) in ours:
                scope[name] = value.result()
        wait(self, scope)

    AsyncCompile.cpp_pybinding, AsyncCompile.wait = add, loaded  # type: ignore[method-assign]
    try:
        yield
    finally:
        AsyncCompile.cpp_pybinding, AsyncCompile.wait = compile_one, wait  # type: ignore[method-assign]


def _is_alone() -> bool:
    """Whether compilers run one after the other."""
    from torch._inductor.async_compile import get_compile_threads

    return bool(get_compile_threads() <= 1)
