"""Replacements for imports that may be missing: ParityBench's helpers, and stubs of missing packages.

Key functions: install_helpers, import_case_file.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import types
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch

_MOST_STUBS = 40


class MockConfig(dict[str, Any]):
    """The ``_mock_config`` of ParityBench: a dictionary whose keys are also attributes."""

    __getattr__ = dict.__getitem__


class MockLayer(torch.nn.ReLU):
    """The ``_mock_layer`` of ParityBench for calls without sizes."""

    expansion = 1


def _mock_layer(in_features: int | None = None, out_features: int | None = None, *args: Any, **kwargs: Any) -> Any:
    return torch.nn.Linear(in_features, out_features, **kwargs) if in_features and out_features else MockLayer()


def _patch_functional() -> None:
    """Merges ``torch.functional`` and ``torch.nn.functional``, as both are imported as ``F``."""
    pair = (torch.functional, torch.nn.functional)
    for source, target in (pair, pair[::-1]):
        for name in dir(source):
            if re.match("[a-z]", name) and not hasattr(target, name):
                setattr(target, name, getattr(source, name))


def install_helpers() -> None:
    """Installs a module ``_paritybench_helpers`` with the same names, without the compilers that the original imports."""
    module = types.ModuleType("_paritybench_helpers")
    names = {
        "_mock_config": MockConfig,
        "_mock_layer": _mock_layer,
        "patch_functional": _patch_functional,
        "_paritybench_base": unittest.TestCase,
        "_fails_compile": lambda: lambda function: function,
    }
    vars(module).update(names)
    sys.modules[module.__name__] = module


class _StubModule(types.ModuleType):
    """A missing package: its capitalised names are classes (which can be subclassed), other names are mocks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__module__": self.__name__}) if name[:1].isupper() else MagicMock(name=name)
        setattr(self, name, value)
        return value


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds only packages that a file really needs, so that checks for optional packages still fail."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _StubModule(spec.name)
        vars(module)["__version__"] = "99.0"  # torch reads tensorboard's version
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _missing(error: BaseException | None) -> str:
    """The missing package that caused an ImportError; empty if it has another cause."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return (error.name or "").partition(".")[0]
        error = error.__cause__ or error.__context__
    return ""


def import_case_file(path: Path) -> tuple[types.ModuleType, list[str]]:
    """Imports a file of cases; stubs missing packages and retries.

    Returns the module and the names of the packages that were stubbed. Raises whatever the file's import raises.
    """
    install_helpers()
    finder = StubFinder()
    sys.meta_path.append(finder)
    while True:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as error:
            package = _missing(error)
            if not package or package in finder.packages or package in sys.modules or len(finder.packages) >= _MOST_STUBS:
                raise
            finder.packages.add(package)
        else:
            return module, sorted(finder.packages)
