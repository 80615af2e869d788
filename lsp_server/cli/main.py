"""The command ``magpy-lsp``: check, run, explain-run, bisect, verify, compile, kernels, init, demo, diff, explain, docs,
doctor, cache, mcp, server.

Key function: main. Only click is imported here; each command imports what it needs. No command imports torch: the user's
program runs in a separate process.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from typing import Any, NoReturn

import click

from lsp_server.cli.examples import Cli, epilog
from lsp_server.cli.options import (
    PROGRAM_ARGS,
    SEVERITIES,
    ProgramCommand,
    color_option,
    compile_option,
    compile_options,
    engine_option,
    explain_run_options,
    fail_on_option,
    kernels_options,
    live_option,
    mode_option,
    note_on_arguments,
    paired_options,
    program_options,
    ptx_option,
    python_option,
    steps_option,
    target_option,
    verify_option,
)
from magpy_core import __version__

STATUS = (
    "Exit status: 0 no findings at or above --fail-on, 1 findings, 2 usage or tool error, "
    "3 the program itself failed, 130 interrupted."
)
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Cli, context_settings=SETTINGS, epilog=epilog("", STATUS))
@click.version_option(__version__, prog_name="magpy-lsp", message="%(prog)s %(version)s")
def cli() -> None:
    """Show the operator graphs, guards and side effects of a PyTorch program, from one monitored run."""


@cli.command(
    cls=ProgramCommand,
    epilog=epilog("check", STATUS),
    short_help="Run a few steps under the monitor and print the findings.",
)
@program_options
@engine_option
@steps_option("3")
@target_option("none")
@ptx_option
@fail_on_option("warning")
def check(**options: Any) -> None:
    """Run a program for a few steps under the monitor and print the findings.

    ENTRYPOINT is a script or the name of a configured entrypoint; without one, all that are configured run.
    Settings are read from [tool.magpy] in the nearest pyproject.toml at or above the entrypoint.
    """
    _program("check", options)


@cli.command(cls=ProgramCommand, epilog=epilog("run", STATUS))
@program_options
@steps_option("0")
@compile_option
@mode_option
@verify_option
@live_option
@fail_on_option("error")
def run(**options: Any) -> None:
    """Run a program with its regions compiled and print the speedup.

    The program's output is passed through. Findings of severity error or warning and a table of the regions follow it.
    """
    _program("run", options)


@cli.command(
    cls=ProgramCommand,
    epilog=epilog(
        "explain-run",
        "Exit status: 0 explained, 2 no report or usage error, 3 the program itself failed, 130 interrupted.",
    ),
    short_help="Say why parts of a run are not compiled.",
)
@explain_run_options
def explain_run(**options: Any) -> None:
    """Say for each model, optimizer and training loop of a run whether it is compiled, and why not.

    Without ENTRYPOINT, of the last `magpy-lsp run` in this folder, or in one above it. ENTRYPOINT is a JSON report
    (`-`: stdin), or a script, which is then run compiled. Shown are the reason, the value and line that cause it, the
    share of a step that runs in eager mode because of it, and what to do.
    """
    from lsp_server.cli.explain_run import explain_run as show

    note_on_arguments(click.get_current_context())
    sys.exit(show(click.get_current_context().meta[PROGRAM_ARGS], options))


@cli.command(
    cls=ProgramCommand,
    epilog=epilog("bisect", STATUS),
    short_help="Find which operation the compiler computes wrongly.",
)
@program_options
@steps_option("50")
@click.option(
    "--into",
    "folder",
    metavar="DIR",
    default="magpy-bisect",
    show_default=True,
    help="The folder for the file that reproduces a difference.",
)
@fail_on_option("error")
def bisect(folder: str, **options: Any) -> None:
    """Compare each call of compiled code with eager mode, and trace a difference to its cause.

    The finding names the smallest part of the graph that differs, and what is at fault: Inductor, a decomposition or MagPy.
    A Python file that shows it with torch alone is written to DIR. The program waits for the compiler.
    """
    steps = 50 if options["steps"] is None else options["steps"]
    verify = f"bisect:{os.path.abspath(folder)}"
    _program("run", {**options, "steps": steps, "verify": verify, "compile": "foreground", "live": False})


@cli.command(
    cls=ProgramCommand,
    epilog=epilog(
        "verify",
        "Exit status: 0 equal, or equal up to rounding; 1 compiled code differs, or did and was not used; 2 a run failed, "
        "or nothing could be compared; 130 interrupted.",
    ),
    short_help="Compare a compiled run with eager mode, from start to end.",
)
@paired_options
def verify(**options: Any) -> None:
    """Run a program compiled and in eager mode, and compare their states, printed lines and files.

    The verdict is equal (bit by bit), equal up to rounding, or the first difference. How much rounding changes this program
    is measured: where the runs differ, eager runs with rounding noise follow. Each run works in a fresh copy of the working
    folder. The program's random seeds must be fixed.
    """
    from lsp_server.cli.verify import verify as compare

    note_on_arguments(click.get_current_context())
    sys.exit(compare(click.get_current_context().meta[PROGRAM_ARGS], options))


@cli.command(
    "compile",
    cls=ProgramCommand,
    epilog=epilog(
        "compile",
        "Exit status: 0 compiled, 2 nothing could be, usage or tool error, 3 the program itself failed, 130 interrupted.",
    ),
    short_help="Compile a program's code ahead of time, for `run`.",
)
@compile_options
def compile_command(**options: Any) -> None:
    """Run the first steps of a program, compile all that `run` would compile, store the code, and exit.

    The program waits for each graph's compiler, which may use every processor. The next `magpy-lsp run` of the same
    program with the same arguments loads the code as soon as it has recorded a step. Stops after 24 steps; if what a run
    computes later is to be compiled, too, such as an evaluation, --steps reaches it.
    """
    from lsp_server.cli.compile import compile_ahead

    note_on_arguments(click.get_current_context())
    sys.exit(compile_ahead(click.get_current_context().meta[PROGRAM_ARGS], options))


@cli.command(
    cls=ProgramCommand,
    epilog=epilog("kernels", "Exit status: 0 listed, 2 usage or tool error, 3 the program itself failed."),
    short_help="List the GPU kernels of a program, without the GPU.",
)
@kernels_options
def kernels(**options: Any) -> None:
    """List the GPU kernels that a program launches on a device that this machine need not have.

    Runs the program for a few steps under the monitor, and compiles each captured graph (forward, backward, optimizer)
    with Inductor and Triton for the device. Each kernel is shown with its source lines, its registers, and a lower bound of
    its time by the device's published figures. The lines of the program follow by their time in a step, hottest first.
    Nothing runs on a device. With a line, only the kernels that compute something of it, with their Triton source.
    """
    from lsp_server.cli.kernels import kernels as show

    note_on_arguments(click.get_current_context())
    sys.exit(show(click.get_current_context().meta[PROGRAM_ARGS], options))


@cli.command(epilog=epilog("init"), short_help="Find the project's programs; write [tool.magpy] and CI.")
@click.argument("path", type=click.Path(exists=True), default=".")
@click.option("--force", is_flag=True, help="Replace the entrypoints of an existing [tool.magpy], and the workflow.")
@click.option("--ci/--no-ci", default=True, show_default=True, help="Write .github/workflows/magpy.yml.")
@click.option("--baseline", is_flag=True, help="Run a check, and write its findings to a baseline as known ones.")
def init(path: str, **options: Any) -> None:
    """Set a project up: find its entrypoints, and write [tool.magpy] and a CI workflow.

    PATH is the project's folder, or a script in it that is the entrypoint. Only --baseline runs a program. An existing
    [tool.magpy] is not changed without --force, which replaces its entrypoints and keeps its other settings.

    Exit status: 0 written, 2 nothing written; with --baseline, also those of `check`.
    """
    from lsp_server.cli.init import init as set_up

    sys.exit(set_up(path, check=_check_status, **options))


@cli.command(epilog=epilog("demo"), short_help="Copy an example into a new folder and check it.")
@click.option("--into", default="magpy-demo", show_default=True, metavar="DIR", help="The new folder for the example.")
@click.option("--check/--no-check", "checks", default=True, show_default=True, help="Check it, and say what to do next.")
def demo(into: str, checks: bool) -> None:
    """Copy a small training script into a new folder, check it, and say what to do next.

    Exit status: 0 the check found what it should, 2 the folder exists or can't be written, 3 the script failed.
    """
    from lsp_server.cli.demo import demo as show

    sys.exit(show(into, check=_check_status if checks else None))


@cli.command(epilog=epilog("diff"), short_help="Compare two reports: findings, regions, kernels.")
@click.argument("old")
@click.argument("new")
@click.option(
    "--format", "output_format", type=click.Choice(("text", "markdown", "json", "html")), default="text", show_default=True
)
@click.option("--output", metavar="FILE", help="Write the comparison to FILE.")
@click.option(
    "--threshold",
    type=click.FloatRange(0),
    default=20.0,
    show_default=True,
    metavar="PERCENT",
    help="A time that rose by more than this counts as slower.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="Exit 1 if a finding at least this severe appeared.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 even if something got worse.")
@color_option
def diff(old: str, new: str, **options: Any) -> None:
    """Compare two reports of `check`, `run` or `kernels` (--format json): findings, slower regions, kernels of a target.

    OLD and NEW are files; `-` is stdin. Kernels match by the lines and operations that they compute: which are new, gone or
    larger, and where two are now what one was. Exit status: 0 nothing got worse, 1 a finding appeared or a region got
    worse (slower, more graph breaks, later captures, kernels that move more on the same target), 2 a file can't be used.
    """
    from lsp_server.cli.diff import diff as show

    sys.exit(show(old, new, **options))


@cli.command(epilog=epilog("explain"), short_help="Explain finding codes: what happened, what to do.")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@click.option("--all", "everything", is_flag=True, help="Every code.")
@click.option(
    "--format", "output_format", type=click.Choice(("text", "markdown", "json")), default="text", show_default=True
)
@color_option
def explain(codes: tuple[str, ...], everything: bool, output_format: str, color: str) -> None:
    """Explain finding codes: what happened, why, what it costs, what to do.

    CODE is a code (MP102), its name (host-read) or a prefix (MP1). `magpy-lsp docs` has the other pages.
    """
    from lsp_server.cli.explain import explain as show

    show(codes, everything, output_format, color)


@cli.command(epilog=epilog("docs"), short_help="Show the documentation, without a network.")
@click.argument("page", required=False)
@click.option("--open", "in_browser", is_flag=True, help="Open the page of the built site in a browser, and print its path.")
@click.option("--format", "output_format", type=click.Choice(("text", "markdown")), default="text", show_default=True)
@color_option
def docs(page: str | None, in_browser: bool, output_format: str, color: str) -> None:
    """Show a page of the documentation; without PAGE, list the pages.

    PAGE is a name of that list (cli, ci, limits), or a finding code. Needs no network.
    """
    from lsp_server.cli.docs import docs as show

    sys.exit(show(page, output_format, color, in_browser=in_browser))


@cli.command(epilog=epilog("doctor"))
@python_option
@click.option("--format", "output_format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--inductor/--no-inductor", default=True, show_default=True, help="Compile a tiny graph to see whether it works."
)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True, metavar="SECONDS")
@color_option
def doctor(python: str | None, output_format: str, inductor: bool, timeout: float, color: str) -> None:
    """Check this machine and say how to fix problems.

    Exit status: 0 all required checks passed, 1 a check failed.
    """
    from lsp_server.cli.doctor import doctor as run_checks

    sys.exit(run_checks(python, output_format, inductor=inductor, timeout=timeout, color=color))


@cli.group(epilog=epilog("cache"), short_help="Show, empty, save or load the folder of compiled code.")
def cache() -> None:
    """Show, empty, save or load the folder that keeps compiled code from run to run."""


@cache.command("info", epilog=epilog("cache info"))
@click.option("--format", "output_format", type=click.Choice(("text", "json")), default="text", show_default=True)
def cache_info(output_format: str) -> None:
    """Print the folder, its size, how many graphs it holds, and the limit."""
    from lsp_server.cli.cache import show

    show(output_format)


@cache.command("clear", epilog=epilog("cache clear"))
def cache_clear() -> None:
    """Remove everything in it, without confirmation, and print how much was removed."""
    from lsp_server.cli.cache import clear

    clear()


@cache.command("save", epilog=epilog("cache save"))
@click.argument("file", type=click.Path(dir_okay=False))
@python_option
def cache_save(file: str, python: str | None) -> None:
    """Write the compiled code of all programs to FILE, one archive for machines that are like this one.

    The archive says for which torch, Python, MagPy and processor it is. It needs no compiler where it is loaded.
    Exit status: 0 written, 2 there is no code, or FILE can't be written.
    """
    from lsp_server.cli.cache import save

    save(file, python)


@cache.command("load", epilog=epilog("cache load"))
@click.argument("file", type=click.Path(dir_okay=False))
@python_option
def cache_load(file: str, python: str | None) -> None:
    """Add the compiled code in FILE, which `cache save` has written, to the folder.

    LOAD ONLY FILES THAT YOU TRUST: an archive holds machine code and Python pickles, which later runs execute. Checksums
    find damage, not malice. An archive for another torch, Python, MagPy or processor, or with damaged or unexpected
    files, is refused as a whole. Exit status: 0 loaded, 2 refused.
    """
    from lsp_server.cli.cache import load

    load(file, python)


@cli.command(epilog=epilog("mcp"), short_help="Start the server for coding assistants (Model Context Protocol).")
@click.option("--skill", is_flag=True, help="Print a SKILL.md that tells an assistant when and how to use MagPy, and exit.")
def mcp(skill: bool) -> None:
    """Start a server of the Model Context Protocol on stdin and stdout (coding assistants do this).

    Its tools are check, explain, run, kernels and verify. All except explain execute the script that the assistant names;
    nothing runs before. `magpy-lsp docs agents` says how to connect. Exit status: 2 the package mcp is missing.
    """
    from lsp_server.cli.agents import serve, show_skill

    sys.exit(show_skill() if skill else serve())


@cli.command(epilog=epilog("server"))
@click.option("--stdio", is_flag=True, help="Accepted for compatibility with clients; stdio is the only transport.")
def server(stdio: bool) -> None:
    """Start the language server on stdin and stdout (editors do this)."""
    gc.disable()  # imported modules stay alive: collecting garbage while importing takes a fifth of the start-up time
    from lsp_server.server.main import main as serve

    gc.freeze()
    gc.enable()
    sys.exit(serve())


def _program(command: str, options: dict[str, Any]) -> NoReturn:
    from lsp_server.cli.program import execute
    from lsp_server.cli.settings import resolve

    note_on_arguments(click.get_current_context())
    args = click.get_current_context().meta[PROGRAM_ARGS]
    if options["watch"]:
        from lsp_server.cli.watch import watch

        sys.exit(watch(lambda: resolve(command, args, options)))
    effectives = resolve(command, args, options)
    if options["show_settings"]:
        click.echo("\n\n".join(effective.describe() for effective in effectives))
        sys.exit(0)
    sys.exit(execute(effectives))


def _check_status(args: list[str]) -> int:
    """Runs ``check`` with these arguments; returns the exit status."""
    from lsp_server.cli.program import execute
    from lsp_server.cli.settings import resolve

    with check.make_context("check", args) as context:
        return execute(resolve("check", context.meta[PROGRAM_ARGS], context.params))


def _give_up(error: OSError) -> NoReturn:
    """The output can't be written, such as to a full disk. What is left of it has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        sys.exit(1)  # the reader has seen enough
    click.echo(f"magpy-lsp: the output can't be written: {error.strerror or error}.", err=True)
    sys.exit(2)


def main() -> NoReturn:
    """The console script. An internal error exits with status 2, never 1, which means findings."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        try:
            cli(prog_name="magpy-lsp")
        finally:
            sys.stdout.flush()
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:  # of a stream
            _give_up(error)
        import traceback

        traceback.print_exc()
        click.echo("magpy-lsp: this is a bug in MagPy; please report it with the lines above.", err=True)
        sys.exit(2)
    sys.exit(0)


if __name__ == "__main__":
    main()
