"""The text of a capture's functions: guard, graph and replay, joined. Key functions: ``functions``, ``short_functions``."""

from __future__ import annotations

MATCHES = "\ndef matches(args, kwargs, gather=gather):\n    return gather(args, kwargs) is not MISS\n"
"""Whether a call fits. Like every function of a capture, it finds no other one by name in their namespace: they are taken
out of it, as a cycle would keep what the guards compare with."""
GUARD_ERRORS = "(AttributeError, LookupError, TypeError, ValueError, ReferenceError, StopIteration, ArithmeticError)"


def body(lines: list[str], indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


def _guarded(name: str, guard: list[str], after: str) -> str:
    return (
        f"def {name}(args, kwargs):\n    try:\n" + body(guard, " " * 8) + after
        + f"    except {GUARD_ERRORS}:\n        return MISS\n"
    )  # fmt: skip


def functions(guard: list[str], shapes: list[str], graph: list[str], replay: list[str], gather: list[str]) -> str:
    """``run``, the whole call; ``gather``, the graph's inputs of a call that fits."""
    return (
        _guarded("run", guard, body(shapes, " " * 8)) + body(graph, " " * 4) + body(replay, " " * 4)
        + "\n" + _guarded("gather", guard, body(gather, " " * 8))
    )  # fmt: skip


def short_functions(guard: list[str], shapes: list[str], graph: list[str], replay: list[str]) -> str:
    """``run`` and ``matches`` with the first level of the guard; ``changed`` and ``matches_full`` are for when it can't
    tell. None of them is looked up by name in their namespace, which need not keep them."""
    return (
        _guarded("run_short", guard, body(shapes, " " * 8)) + body(graph, " " * 4) + body(replay, " " * 4)
        + "\ndef run(args, kwargs, run_short=run_short):\n"
        "    result = run_short(args, kwargs)\n"
        "    return changed(args, kwargs) if result is CHANGED else result\n\n"
        + _guarded("check", guard, body([*shapes, "return True"], " " * 8))
        + "\ndef matches(args, kwargs, check=check):\n"
        "    result = check(args, kwargs)\n"
        "    return matches_full(args, kwargs) if result is CHANGED else result is True\n"
    )  # fmt: skip
