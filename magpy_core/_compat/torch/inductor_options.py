"""Options of ``torch._inductor.config`` for a compilation. Key names: OF_MODE, OF_BACKWARD. Key functions: checked,
strict_numerics."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Mapping
from typing import Any

from magpy_core._compat.torch.compilers import import_dynamo

#: For each mode, the differences from Inductor's defaults.
OF_MODE: dict[str, dict[str, Any]] = {
    "default": {},
    # torch.compile's "max-autotune-no-cudagraphs": with CUDA graphs, a result would be overwritten by the next call.
    "max": {"max_autotune": True, "coordinate_descent_tuning": True},
}

#: For a graph with a backward pass inside, on the CPU. With channels-last convolutions, Inductor copies their inputs and
#: weights twice, early, and keeps the second copy for the backward pass (ResNet-18: 8 % slower, 13 MB more).
OF_BACKWARD: dict[str, Any] = {"layout_optimization": False}

#: Options that MagPy sets itself, or that change results if Inductor is not called by torch.compile.
_REFUSED = {
    "compile_threads": "MagPy sets it when it compiles in the background",
    "custom_partitioner_fn": "MagPy sets it",
    "fallback_random": "MagPy sets it; use same_random",
    "freezing": "the weights of a region may change",
    "joint_graph_constant_folding": "MagPy sets it: with folding, results may share an input's memory",
    "joint_custom_pre_pass": "MagPy sets it",
    "post_grad_custom_pre_pass": "MagPy sets it",
    "triton.cudagraph_trees": "a result would be overwritten by the next call",
    "triton.cudagraphs": "a result would be overwritten by the next call",
}


def strict_numerics() -> dict[str, Any]:
    """The options by which Inductor's kernels give eager mode's bits wherever it can; empty before torch 2.15, which has no
    such options. Some only apply if they are set before Inductor is imported (``TORCHINDUCTOR_NUMERICS=strict``)."""
    import_dynamo()
    from torch._inductor import config

    return {"numerics": "strict"} if hasattr(config, "numerics") else {}


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` by Inductor's own names, as in ``torch.compile`` (``-`` may replace ``_``).

    Raises ValueError for a name that does not exist or can't be set, TypeError for a value of another type."""
    import_dynamo()
    from torch._inductor import config

    known, found = config.get_config_copy(), dict[str, Any]()
    for given, value in options.items():
        name = str(given).replace("-", "_")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " torch._inductor.list_options() lists them."
            raise ValueError(f"{given!r} is not an option of Inductor.{hint}")
        if name in _REFUSED:
            raise ValueError(f"{given!r} can't be set: {_REFUSED[name]}.")
        kind = config.get_type(name)  # type: ignore[attr-defined]
        # as in torch.compile, values of generic types are not checked
        if typing.get_origin(kind) is None and not isinstance(value, kind):
            raise TypeError(f"{given!r} is {type(value).__name__}, and must be {type(known[name]).__name__}.")
        found[name] = value
    return found
