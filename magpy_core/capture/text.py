"""The text of a capture's functions: guard, graph and replay, joined. Key type: Lines."""

from __future__ import annotations

from dataclasses import dataclass

from magpy_core.guards.codegen import inline_single_uses

# Random numbers are drawn before it is known whether the capture fits: if it doesn't, the random state is restored.
DRAWING = """
def run(args, kwargs, run_drawing=run_drawing):
    before = []
    try:
        result = run_drawing(args, kwargs, before)
    except CaptureFailed:
        rewind_streams(before)
        raise
    if result is MISS or type(result) is NotRun:
        rewind_streams(before)
    return result

def gather(args, kwargs, gather_drawing=gather_drawing):
    before = []
    try:
        return gather_drawing(args, kwargs, before)
    finally:
        rewind_streams(before)
"""


@dataclass(frozen=True)
class Lines:
    """The statements of each part. ``inputs``: the expressions of the graph's inputs. ``shapes``: the checks that backends
    add to the guard. ``draws``: whether the guard draws random numbers."""

    guard: list[str]
    inputs: list[str]
    shapes: list[str]
    graph: list[str]
    replay: list[str]
    draws: bool
    uncounted: int | None = None
    """How many statements of the guard come before the lookups that a cache counts; None: there are none."""

    @property
    def gather(self) -> list[str]:
        return [f"return ({', '.join(self.inputs)}{',' if self.inputs else ''})"]

    @property
    def short_guard(self) -> list[str]:
        return inline_single_uses(self.guard, [*self.graph, *self.replay, *self.gather])

    def functions(self) -> str:
        """``run``, the whole call; ``gather``, the graph's inputs of a call that fits; ``matches``, whether it fits.
        None of them is looked up in their globals, from which they are removed."""
        guard, name, more = self.short_guard, "", ""
        if self.draws:
            name, more = "_drawing", ", before"
        return (
            _guarded(f"run{name}", guard, _body(self.shapes, 8), more) + _body([*self.graph, *self.replay], 4)
            + "\n" + _guarded(f"gather{name}", guard, _body(self.gather, 8), more)
            + (DRAWING if self.draws else "")
            + "\n" + self._matches()
        )  # fmt: skip

    def _matches(self) -> str:
        if self.uncounted is not None and not self.draws:  # the call may run in eager mode then, and look up the same
            guard = inline_single_uses(self.guard[: self.uncounted], [])
            whole = _guarded("fits", guard, "        return True\n")
            return whole + "\ndef matches(args, kwargs, fits=fits):\n    return fits(args, kwargs) is True\n"
        return "\ndef matches(args, kwargs, gather=gather):\n    return gather(args, kwargs) is not MISS\n"

    def fast_functions(self) -> str:
        """``run`` and ``matches`` with the first level of the guard; ``changed`` and ``matches_full`` decide if a tag
        changed. None of them is looked up in their globals, from which they are removed."""
        guard = self.short_guard
        return (
            _guarded("run_short", guard, _body(self.shapes, 8)) + _body([*self.graph, *self.replay], 4)
            + "\ndef run(args, kwargs, run_short=run_short):\n"
            "    result = run_short(args, kwargs)\n"
            "    return changed(args, kwargs) if result is CHANGED else result\n\n"
            + _guarded("check", guard, _body([*self.shapes, "return True"], 8))
            + "\ndef matches(args, kwargs, check=check):\n"
            "    result = check(args, kwargs)\n"
            "    return matches_full(args, kwargs) if result is CHANGED else result is True\n"
        )  # fmt: skip


def _body(lines: list[str], indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _guarded(name: str, guard: list[str], after: str, more: str = "") -> str:
    return (
        f"def {name}(args, kwargs{more}):\n    try:\n" + _body(guard, 8) + after
        + "    except Exception:\n        return MISS\n"
    )  # fmt: skip
