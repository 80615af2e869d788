"""Modes: context managers of torch, NumPy and the standard library times where they are entered and how they are left.

What computes depends on modes that are in force around the call or entered inside of it; a mode that was left open, or left
by an exception, must be so after a replay. `python -m tests.soundness.generators.modes`. Key function: entered.
"""

from __future__ import annotations

import contextlib
import contextvars
import decimal
import io
import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import magpy_core
from tests.soundness.harness.families import Family, difference, first_difference, main, short_stacks

VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=1)


class Settings:
    """Of the program's own."""

    scale = 1.0
    depth = 0


class Functions(TorchFunctionMode):
    """Counts, and turns ``torch.add`` into a subtraction."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {})) if func is not torch.add else torch.sub(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    """Counts operators."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Settings.depth += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def set_to(owner: Any, name: str, value: Any) -> Iterator[Any]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def context_variable(value: int) -> Iterator[None]:
    token = VARIABLE.set(value)
    yield
    VARIABLE.reset(token)


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


class Scaled:
    """A context manager that is an object of the program's."""

    def __init__(self, scale: float) -> None:
        self.scale, self.before = scale, 0.0

    def __enter__(self) -> Scaled:
        self.before, Settings.scale = Settings.scale, self.scale
        return self

    def __exit__(self, *_error: Any) -> bool:
        Settings.scale = self.before
        return False


MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "grad off": lambda: torch.set_grad_enabled(False),
    "inference": torch.inference_mode,
    "no inference": lambda: torch.inference_mode(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast half": lambda: torch.autocast("cpu", dtype=torch.float16, cache_enabled=False),
    "autocast off": lambda: torch.autocast("cpu", enabled=False),
    "default dtype": lambda: default_dtype(torch.float64),
    "device": lambda: torch.device("cpu"),
    "meta": lambda: torch.device("meta"),
    "fork_rng": torch.random.fork_rng,
    "deterministic": deterministic,
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2),
    "save on cpu": torch.autograd.graph.save_on_cpu,
    "no saved hooks": lambda: torch.autograd.graph.disable_saved_tensors_hooks("none"),
    "multithreading": lambda: torch.autograd.set_multithreading_enabled(False),
    "mkldnn": lambda: torch.backends.mkldnn.flags(enabled=False),
    "sdpa": lambda: sdpa_kernel([SDPBackend.MATH]),
    "record_function": lambda: torch.autograd.profiler.record_function("region"),
    "functions": Functions,
    "dispatched": Dispatched,
    "sparse invariants": torch.sparse.check_sparse_tensor_invariants,
    "forward ad": torch.autograd.forward_ad.dual_level,
    "warnings": lambda: warnings.catch_warnings(record=True),
    "warnings raise": lambda: warnings.catch_warnings(action="error"),
    "decimal": lambda: decimal.localcontext(prec=3),
    "stdout": lambda: contextlib.redirect_stdout(io.StringIO()),
    "errstate": lambda: np.errstate(divide="raise", invalid="ignore"),
    "printoptions": lambda: np.printoptions(precision=2),
    "patch": lambda: mock.patch.object(Settings, "scale", 3.0),
    "patch dict": lambda: mock.patch.dict(os.environ, {"MAGPY_TEST_SCALE": "4"}),
    "patch function": lambda: mock.patch("torch.relu", torch.sigmoid),
    "patch global": lambda: mock.patch(f"{__name__}.GAIN", 2.5),
    "set_to": lambda: set_to(Settings, "scale", 5.0),
    "set_to random": lambda: set_to(random, "random", lambda: 0.5),
    "context variable": lambda: context_variable(7),
    "scaled": lambda: Scaled(6.0),
    "suppress": lambda: contextlib.suppress(ValueError),
    "null": lambda: contextlib.nullcontext(3),
    "directory": lambda: contextlib.chdir("/"),
}

GAIN = 1.0


class Left(Exception):
    """Ends a block early."""


def _shown(y: Any) -> Any:
    if isinstance(y, torch.Tensor):
        data = y.detach().float().tolist() if y.device.type != "meta" else None
        return data, str(y.dtype), y.requires_grad, y.is_inference(), y.device.type
    return [_shown(v) for v in y] if isinstance(y, (list, tuple)) else y


class Work:
    def __init__(self, mode: str) -> None:
        torch.manual_seed(0)
        random.seed(0)
        self.make = MODES[mode]
        self.layer = nn.Linear(2, 2)
        self.held = self.make()
        self.leave = False
        self.log: list[Any] = []

    def body(self, x: torch.Tensor) -> Any:
        y = torch.add(self.layer(x), x) * Settings.scale * GAIN * VARIABLE.get()
        made = torch.ones(2) * random.random() + torch.rand(2)
        self.log.append(len(self.log))
        if self.leave:
            raise Left
        return torch.relu(y), made, torch.is_grad_enabled(), torch.get_default_dtype(), os.environ.get("MAGPY_TEST_SCALE")

    def plain(self, x: torch.Tensor) -> Any:
        out = self.body(x)
        with decimal.localcontext():
            third = str(decimal.Decimal(1) / 3)
        return out, third, str(np.float64(1) / 3), f"{np.array([1 / 3])}"

    def told(self, x: torch.Tensor) -> Any:
        print("told", float(x.sum() * 0))
        warnings.warn("told", stacklevel=1)
        return self.body(x)


def _inside(w: Work, x: torch.Tensor, do: Any) -> Any:
    with w.make():
        y = do(x)
    return y, do(x)


def _returned(w: Work, x: torch.Tensor, do: Any) -> Any:
    with w.make():
        return do(x)


def _around(w: Work, x: torch.Tensor, do: Any) -> Any:
    return do(x)


def _held(w: Work, x: torch.Tensor, do: Any) -> Any:
    with w.held:
        y = do(x)
    return y


def _by_hand(w: Work, x: torch.Tensor, do: Any) -> Any:
    mode = w.make()
    mode.__enter__()
    try:
        y = do(x)
    finally:
        mode.__exit__(None, None, None)
    return y, torch.is_grad_enabled()


def _twice(w: Work, x: torch.Tensor, do: Any) -> Any:
    with w.make(), w.make():
        return do(x)


def _stack(w: Work, x: torch.Tensor, do: Any) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(w.make())
        y = do(x)
        stack.pop_all().close()
        return y, do(x)


def _caught(w: Work, x: torch.Tensor, do: Any) -> Any:
    try:
        with w.make():
            return do(x)
    except (Left, Warning):
        return "left", do.__name__, torch.is_grad_enabled(), Settings.scale


def _decorated(w: Work, x: torch.Tensor, do: Any) -> Any:
    mode = w.make()
    if not callable(mode):
        return do(x)

    @mode
    def inner(x: torch.Tensor) -> Any:
        return do(x)

    return inner(x)


def _generator(w: Work, x: torch.Tensor, do: Any) -> Any:
    def steps() -> Iterator[Any]:
        with w.make():
            yield do(x)
            yield torch.is_grad_enabled()

    return [v for v, _ in zip(steps(), range(1), strict=False)]


def _in_no_grad(w: Work, x: torch.Tensor, do: Any) -> Any:
    with torch.no_grad():
        with w.make():
            y = do(x)
        return y, do(x)


def _backward(w: Work, x: torch.Tensor, do: Any) -> Any:
    w.layer.zero_grad()
    with w.make():
        loss = do(x)
        loss = loss[0][0].sum() if isinstance(loss[0], tuple) else loss[0].sum()
    if loss.requires_grad:
        loss.backward()
    return loss, w.layer.weight.grad


WHERE: dict[str, Callable[[Work, torch.Tensor, Any], Any]] = {
    "inside": _inside,
    "returned": _returned,
    "around": _around,
    "around some": _around,
    "held": _held,
    "by hand": _by_hand,
    "twice": _twice,
    "stack": _stack,
    "caught": _caught,
    "decorated": _decorated,
    "generator": _generator,
    "in no_grad": _in_no_grad,
    "backward": _backward,
}

BODIES = ("body", "plain", "told")
CALLS = 6


def _life(mode: str, where: str, body: str, compiled: bool) -> list[Any]:
    work, do = Work(mode), WHERE[where]
    before = os.getcwd()
    Settings.scale, Settings.depth = 1.0, 0
    VARIABLE.set(1)

    def region(x: torch.Tensor) -> Any:
        return do(work, x, getattr(work, body))

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for call in range(CALLS):
        x = torch.full((1, 2), float(call % 3))
        work.leave = call in (3, 5) and where not in ("around", "around some")
        there = where == "around" or (where == "around some" and call in (1, 2, 5))
        outer = work.make() if there else contextlib.nullcontext()
        with contextlib.redirect_stdout(io.StringIO()) as text, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with outer:
                    value = target(x)
            except (Exception, Warning) as error:
                value = type(error).__name__, str(error)[:80]
        said = [str(w.message) for w in caught if "told" in str(w.message)]
        modes = torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), os.getcwd()
        left = (
            torch.rand(1).item(),
            random.random(),
            VARIABLE.get(),
            Settings.depth,
            Settings.scale,
            torch.is_inference_mode_enabled(),
        )
        held = getattr(work.held, "count", None), decimal.getcontext().prec, np.get_printoptions()["precision"]
        seen.append((repr(_shown(value)), text.getvalue(), said, modes, left, held, list(work.log)))
    os.chdir(before)
    torch.set_grad_enabled(True)
    return seen


def entered(mode: str, where: str, body: str) -> str | None:
    """How a region with such a mode differs from eager mode over some calls; None where it doesn't."""
    with short_stacks():
        return difference(_life, mode, where, body)


SETTINGS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any], Any, Any]] = {
    "default dtype": (torch.set_default_dtype, torch.get_default_dtype, torch.float32, torch.float64),
    "default tensor type": (torch.set_default_tensor_type, torch.get_default_dtype, torch.FloatTensor, torch.DoubleTensor),
    "default device": (torch.set_default_device, torch.get_default_device, None, "meta"),
    "grad mode": (torch.set_grad_enabled, torch.is_grad_enabled, True, False),
    "deterministic": (torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, False, True),
    "deterministic mode": (torch.set_deterministic_debug_mode, torch.get_deterministic_debug_mode, 0, 1),
    "precision": (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "highest", "medium"),
    "warn always": (torch.set_warn_always, torch.is_warn_always_enabled, False, True),
    "anomaly": (torch.autograd.set_detect_anomaly, torch.is_anomaly_enabled, False, True),
    "multithreading": (
        torch.autograd.set_multithreading_enabled, torch._C._is_multithreading_enabled, True, False,
    ),
    "flash": (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, True, False),
    "cudnn": (
        lambda v: setattr(torch.backends.cudnn, "benchmark", v), lambda: torch.backends.cudnn.benchmark, False, True,
    ),
    "mkldnn": (lambda v: torch.backends.mkldnn.set_flags(v), lambda: torch.backends.mkldnn.enabled, True, False),
    "sparse invariants": (
        lambda v: torch.sparse.check_sparse_tensor_invariants.enable() if v else
        torch.sparse.check_sparse_tensor_invariants.disable(),
        torch.sparse.check_sparse_tensor_invariants.is_enabled, False, True,
    ),
    "threads": (torch.set_num_threads, torch.get_num_threads, 1, 2),
    "seed": (torch.manual_seed, torch.initial_seed, 1, 2),
    "print options": (lambda v: torch.set_printoptions(precision=v), lambda: f"{torch.ones(1) / 3}", 4, 2),
    "NumPy print options": (lambda v: np.set_printoptions(precision=v), lambda: f"{np.ones(1) / 3}", 8, 2),
    "NumPy errors": (lambda v: np.seterr(divide=v), lambda: np.geterr()["divide"], "warn", "ignore"),
    "decimal": (lambda v: setattr(decimal.getcontext(), "prec", v), lambda: decimal.getcontext().prec, 28, 4),
    "context variable": (VARIABLE.set, VARIABLE.get, 1, 9),
    "environment": (lambda v: os.environ.update(MAGPY_TEST_SCALE=v), lambda: os.environ.get("MAGPY_TEST_SCALE"), "1", "2"),
    "directory": (os.chdir, os.getcwd, os.getcwd(), "/"),
    "random": (random.seed, random.random, 1, 2),
    "warnings": (lambda v: warnings.simplefilter(v), lambda: warnings.filters[0][0], "default", "ignore"),
}  # fmt: skip


def left(name: str) -> str | None:
    """How a setting that a region leaves changed differs from eager mode; None where it doesn't."""
    write, read, before, after = SETTINGS[name]

    def life(compiled: bool) -> list[Any]:
        def region(x: torch.Tensor) -> Any:
            write(after)
            return x + 1

        target = magpy_core.compile(region, backend="eager") if compiled else region
        seen = []
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                try:
                    write(before)
                    y = target(torch.ones(2, device="cpu"))
                    seen.append((y.tolist(), str(read()), str(read())))
                finally:
                    write(before)
        return seen

    return first_difference([name], life(False), life(True))


ENTERED = Family.product(entered, mode=MODES, where=WHERE, body=BODIES)
LEFT = Family.product(left, setting=SETTINGS)

if __name__ == "__main__":
    raise SystemExit(main(ENTERED, LEFT))
