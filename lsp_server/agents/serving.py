"""The server of the Model Context Protocol: its tools, and serving them on stdin and stdout. Key functions: server, serve.

Programs write into pipes of ours, and the package moves its stdout away from descriptor 1: nothing else gets into it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import click
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from lsp_server.agents import explaining, kernels, reports
from lsp_server.agents.answers import Checked, Kernels, Ran, Verified
from lsp_server.agents.programs import NotPossible, Program, Runner, Tell, settings_of
from lsp_server.agents.reports import Run
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.cli.verify import NoVerdict
from lsp_server.formats.view import clean
from lsp_server.server.lifetime import on_signal
from magpy_core import __version__

INSTRUCTIONS = """\
MagPy finds what makes PyTorch code slow to compile: graph breaks, recompiles, host syncs, with the line and often a fix.
Every tool but `explain` EXECUTES the user's script, with everything that it does: use them only on code that may run here.
Usual order: `check` a training script, apply edits of `fixes` (or follow `hint`, or read `explain`), `check` again until the
findings are gone, then `run` for the speed and `verify` for the results.
"""

_EXECUTES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

T = TypeVar("T")
Script = Annotated[
    str | None,
    Field(
        description="The training script, relative to `cwd`; or `-m package.module`; or the name of an entrypoint in "
        "[tool.magpy]. Absent: the entrypoint that pyproject.toml sets."
    ),
]
Args = Annotated[Sequence[str], Field(description="The arguments of the script, as in sys.argv[1:].")]
Cwd = Annotated[
    str | None,
    Field(description="The folder to run in: an absolute path. Absent: the folder that the server was started in."),
]
Python = Annotated[
    str | None,
    Field(description="A Python interpreter or the folder of a virtual environment. Absent: the one that runs this server."),
]
Timeout = Annotated[float | None, Field(gt=0, description="Seconds after which the program is stopped. Absent: none.")]
Steps = Annotated[int, Field(ge=0, description="Stop the program after so many optimizer steps; 0: run it to its end.")]
Limit = Annotated[int, Field(ge=1, le=200, description="The most findings to return.")]

_INTERRUPTED = 130
_runner = Runner()


async def check(
    ctx: Context[Any, Any],
    script: Script = None,
    args: Args = (),
    cwd: Cwd = None,
    steps: Steps = 3,
    timeout: Timeout = None,
    python: Python = None,
    facts: Annotated[bool, Field(description="Also return facts that need no action.")] = False,
    limit: Limit = 20,
) -> Annotated[CallToolResult, Checked]:
    """Run the first steps of a PyTorch script in eager mode, and return what keeps it from one compiled graph: graph breaks,
    recompiles, host syncs. Each finding has its line, what to do, and often fixes as exact edits. EXECUTES the script."""
    program = Program(script, list(args), cwd, python, steps, timeout)
    settings = _or_error(partial(settings_of, "check", program, {"engine": "magpy", "target": None}))
    run = await _run(settings, ctx, limit, facts=facts, details=settings.has_few_steps)
    return await _answer(lambda: reports.checked(run))


async def run(
    ctx: Context[Any, Any],
    script: Script = None,
    args: Args = (),
    cwd: Cwd = None,
    steps: Steps = 100,
    timeout: Timeout = None,
    python: Python = None,
    limit: Limit = 20,
) -> Annotated[CallToolResult, Ran]:
    """Run a PyTorch script with compiled code, and return how fast its steps are compared with eager mode, what was compiled
    and why not more. With `steps`, the program waits for the compiler, which can take minutes. EXECUTES the script."""
    program = Program(script, list(args), cwd, python, steps, timeout)
    finished = await _run(_or_error(partial(settings_of, "run", program, {})), ctx, limit)
    return await _answer(lambda: reports.ran(finished))


async def verify(
    ctx: Context[Any, Any],
    script: Script = None,
    args: Args = (),
    cwd: Cwd = None,
    steps: Steps = 50,
    every: Annotated[int, Field(ge=1, description="Compare one call in so many.")] = 5,
    whole: Annotated[
        bool,
        Field(
            description="Instead of single calls, compare whole runs, compiled and in eager mode: states, printed lines and "
            "files. EXECUTES the script two to six times, each time in a copy of its folder."
        ),
    ] = False,
    timeout: Timeout = None,
    python: Python = None,
    limit: Limit = 20,
) -> Annotated[CallToolResult, Verified]:
    """Run a PyTorch script with compiled code, and compare calls of it with eager mode, on copies, or whole runs. Returns
    how many were compared and what differs by more than rounding explains. Use it after a change. EXECUTES the script."""
    program = Program(script, list(args), cwd, python, steps, timeout)
    if whole:
        settings = _or_error(partial(settings_of, "run", program, {"compile": "foreground"}))
        try:
            document = await _runner.compare(settings, _tell(ctx))
        except NoVerdict as error:
            raise ToolError(clean(str(error))) from None
        return await _answer(lambda: reports.verified_whole(document, limit))
    finished = await _run(_or_error(partial(settings_of, "run", program, {"verify": str(every)})), ctx, limit)
    return await _answer(lambda: reports.verified(finished))


async def list_kernels(
    ctx: Context[Any, Any],
    script: Script = None,
    args: Args = (),
    cwd: Cwd = None,
    line: Annotated[
        str | None, Field(description="FILE:LINE, as in model.py:36: only the kernels of this line, with their source.")
    ] = None,
    target: Annotated[
        str | None, Field(description="cuda:sm_80 (A100), cuda:sm_90 (H100, the default) or cuda:sm_100 (B200).")
    ] = None,
    timeout: Timeout = None,
    python: Python = None,
    limit: Annotated[int, Field(ge=1, le=200, description="The most kernels to return.")] = 15,
) -> Annotated[CallToolResult, Kernels]:
    """List the GPU kernels that a PyTorch script would launch on a device that may be absent: what each computes, of which
    lines, a lower bound on its time, registers. A script may end in :LINE. Needs Triton. EXECUTES the script."""
    program = Program(script, list(args), cwd, python, None, timeout)
    settings, where = _or_error(lambda: kernels.settings_of(program, line, target))
    finished = await _runner.run(settings, _tell(ctx))
    return await _answer(lambda: kernels.answer(finished, where, limit))


def explain(
    code: Annotated[str, Field(description="A finding's code (MP101) or name (host-read); a family (MP1) lists its codes.")],
) -> str:
    """The page of a finding in Markdown: what happened, why, what it costs, what to do, with an example. Runs nothing."""
    return _or_error(lambda: explaining.page(code))


def server() -> MCPServer:
    """The server with its tools."""
    made = MCPServer("magpy", title="MagPy", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    for function, name, title, hints in (
        (check, "check", "Check a training script", _EXECUTES),
        (explain, "explain", "Explain a finding", _READS),
        (run, "run", "Run a script compiled", _EXECUTES),
        (list_kernels, "kernels", "List GPU kernels", _EXECUTES),
        (verify, "verify", "Compare compiled code with eager mode", _EXECUTES),
    ):
        description = " ".join((function.__doc__ or "").split())
        made.add_tool(function, name=name, title=title, description=description, annotations=hints)
    return made


def serve() -> None:
    """Serves on stdin and stdout until the client closes them, or a signal ends this process."""

    async def until_the_end() -> None:
        # At once: the thread that reads stdin can't be interrupted. Programs end with this process.
        on_signal(lambda: os._exit(_INTERRUPTED))
        await server().run_stdio_async()

    asyncio.run(until_the_end())


def _or_error(do: Callable[[], T]) -> T:
    try:
        return do()
    except NotPossible as error:
        raise ToolError(str(error)) from None
    except click.ClickException as error:  # such as a baseline that can't be written
        raise ToolError(error.format_message()) from None


def _tell(ctx: Context[Any, Any]) -> Tell:
    async def tell(seconds: float, what: str) -> None:
        await ctx.report_progress(seconds, None, what)

    return tell


async def _run(
    settings: ResolvedSettings, ctx: Context[Any, Any], limit: int, *, facts: bool = False, details: bool = False
) -> Run:
    return Run(await _runner.run(settings, _tell(ctx), details=details), limit, facts)


async def _answer(make: Callable[[], BaseModel]) -> CallToolResult:
    """The answer without what is empty, once as text, for clients that show only text, and once structured."""
    made = await to_thread.run_sync(_or_error, make)
    return CallToolResult(
        content=[TextContent(type="text", text=made.model_dump_json(exclude_defaults=True))],
        structured_content=made.model_dump(mode="json", exclude_defaults=True),
    )
