"""Options that ``check`` and ``run`` share, and the command class that separates the program's own arguments.

This module imports only click: ``--help`` must be instant. Key types: ProgramCommand, CodeList; key function:
note_on_arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from magpy_core.distribution import DISTRIBUTION
from magpy_core.limits import LIMITS

FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown")
SEVERITIES = ("error", "warning", "information", "hint")
ENGINES = ("magpy", "dynamo", "both")
COMPILE_MODES = ("default", "max", "quick")
COLORS = ("auto", "always", "never")
PROGRAM_ARGS = "magpy.program_args"
AFTER_SCRIPT = "magpy.after_script"


class ProgramCommand(click.Command):
    """A command of the form ``[options] ENTRYPOINT [the program's arguments]``.

    What stands after the entrypoint is the program's, as with ``python script.py ...``. A ``--`` between them is left out;
    where no entrypoint is named, it stands before the program's arguments.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, program = self._split(args)
        if program[:1] == ["--"]:
            program = program[1:]
        elif ours := next((name for name in map(_name, program) if name in self._options()), None):
            # Perhaps it is an option of the program's, perhaps a mistake: only the user knows.
            ctx.meta[AFTER_SCRIPT] = ours
        ctx.meta[PROGRAM_ARGS] = program
        optional = {name: option for name, option in self._options().items() if isinstance(option, OptionalValue)}
        own = [f"{arg}={optional[arg].without}" if arg in optional else arg for arg in own]
        try:
            return super().parse_args(ctx, own)
        except click.NoSuchOption as error:
            hint = "options of your program stand after the script"
            raise click.UsageError(f"{error.format_message().rstrip('.')}: {hint}.", ctx) from None

    def _options(self) -> dict[str, click.Option]:
        return {
            name: one for one in self.params if isinstance(one, click.Option) for name in (*one.opts, *one.secondary_opts)
        }

    def _split(self, args: list[str]) -> tuple[list[str], list[str]]:
        """The command's own arguments, up to the entrypoint, and the rest."""
        options, at = self._options(), 0
        while at < len(args):
            arg = args[at]
            if arg == "--":
                return args[:at], args[at:]
            if arg == "-" or not arg.startswith("-"):
                return args[: at + 1], args[at + 1 :]
            name = _name(arg)
            option = options.get(name) or options.get(arg[:2])
            takes_value = option is not None and not option.is_flag and option.nargs == 1
            takes_value = takes_value and not isinstance(option, OptionalValue)
            separate = takes_value and (arg == name if name in options else len(arg) == 2)
            at += 2 if separate else 1
            if option is not None and "--module" in option.opts:
                return args[:at], args[at:]
        return args, []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "{ENTRYPOINT | -m MODULE}", "[ARGS...]"]


class OptionalValue(click.Option):
    """An option whose value, if it has one, stands after ``=``: what follows it may be the entrypoint. ``without``: the
    value if there is none."""

    def __init__(self, *args: Any, without: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.without = without


def _name(arg: str) -> str:
    return arg.partition("=")[0] if arg.startswith("--") else arg


def note_on_arguments(ctx: click.Context) -> None:
    """Says on stderr if an option of ours stands where it is the program's."""
    if (name := ctx.meta.get(AFTER_SCRIPT)) is not None:
        click.echo(
            f"magpy-lsp: `{name}` stands after the script, so it goes to the program: options for magpy-lsp stand before "
            "the script. `--` after the script says that the rest is meant for the program.",
            err=True,
        )


class CodeList(click.ParamType[list[str]]):
    """Codes or prefixes of codes, separated by commas: ``MP1,MP204``."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        from lsp_server.config import check_codes

        codes = [part.strip().upper() for part in value.split(",") if part.strip()]
        if not codes:
            self.fail("the list of codes is empty.", param, ctx)
        if wrong := check_codes(codes):
            self.fail(" ".join(wrong), param, ctx)
        return codes


class Verified(click.ParamType[str]):
    """``on``, ``off``, ``strict``, or a number of calls."""

    name = "verify"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in ("on", "off", "strict") or (value.isascii() and value.isdigit() and int(value)):
            return str(value)
        self.fail(f"{value!r} is neither a number of calls, nor `strict`, nor `off`.", param, ctx)


class Format(click.ParamType[tuple[str, str | None]]):
    """``FORMAT`` or ``FORMAT=FILE``."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str | None]:
        if isinstance(value, tuple):
            return value
        name, equals, file = value.partition("=")
        if name not in FORMATS:
            self.fail(f"{name!r} is not one of {', '.join(map(repr, FORMATS))}.", param, ctx)
        if equals and not file:
            self.fail(f"{value!r} names no file.", param, ctx)
        return name, file or None


def color_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--color", type=click.Choice(COLORS), default="auto", show_default=True, help="When to color the output."
    )(command)


def python_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--python",
        metavar="PATH",
        help="The Python interpreter to run the program with (default: this one; without torch, the project's).",
    )(command)


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options common to ``check`` and ``run``."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("entrypoint", required=False),
        click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
        python_option,
        click.option(
            "--cwd",
            type=click.Path(exists=True, file_okay=False),
            help="The directory to run the program in (default: this one).",
        ),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the program after this time."
        ),
        click.option(
            "--format",
            "formats",
            type=Format(),
            multiple=True,
            metavar="FORMAT[=FILE]",
            help=f"Output format: {', '.join(FORMATS)} [default: full]. With =FILE the report goes to that file, in "
            "addition to stdout; repeatable. If stdout is a document (json, sarif, gitlab, junit, markdown), the "
            "program's own stdout goes to stderr.",
        ),
        click.option(
            "--html",
            metavar="DIR",
            help="Write DIR/index.html, a self-contained page (regions, source with findings, guards, operator graphs, "
            "generated code, timeline), and DIR/trace.json for Perfetto.",
        ),
        click.option("--output", metavar="FILE", help="The file for a --format without =FILE."),
        click.option(
            "--events",
            metavar="FILE",
            help="Write what happens in the run to FILE as it happens, one JSON object per line: steps, findings, regions, "
            "what is being compiled, the report.",
        ),
        click.option("--select", type=CodeList(), metavar="CODES", help="Only these codes or families: MP1,MP204."),
        click.option(
            "--ignore", type=CodeList(), metavar="CODES", help="Exclude these codes or families; the longer prefix wins."
        ),
        click.option(
            "--baseline",
            metavar="FILE",
            help="Findings in FILE are known: they are not shown and do not count for --fail-on. Findings that no longer "
            "occur are removed from FILE, unless the variable CI is set.",
        ),
        click.option("--update-baseline", is_flag=True, help="Write the findings of this run to the baseline and exit 0."),
        click.option(
            "-j",
            "--jobs",
            type=click.IntRange(1),
            metavar="N",
            help="How many entrypoints run in parallel [default: check: one per processor, run: 1].",
        ),
        click.option(
            "--nproc-per-node",
            "nproc",
            type=click.IntRange(1),
            metavar="N",
            help="Run the program in N processes under torch.distributed.run, and merge their findings.",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit 0 even if there are findings."),
        click.option("--backend", metavar="NAME", help="inductor (default), aot_eager or eager."),
        click.option(
            "--watch", is_flag=True, help="Run again whenever a Python file or pyproject.toml changes, until Ctrl-C."
        ),
        click.option("--details", is_flag=True, help="Also show facts that need no action: guards, side effects, captures."),
        click.option("--statistics", is_flag=True, help="Also print the number of findings per code."),
        click.option("--show-settings", is_flag=True, help="Print the settings in use and where they come from, and exit."),
        color_option,
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def steps_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--steps",
        type=click.IntRange(0),
        metavar="N",
        help="Stop the program after N optimizer steps (or module calls, if it has no optimizer); 0: run to its end. "
        f"[default: {default}]",
    )


def compile_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--compile",
        type=click.Choice(("background", "foreground")),
        help="background: the program runs in eager mode while Inductor compiles in the background; foreground: it waits. "
        "[default: background; with --steps: foreground]",
    )(command)


def mode_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--mode",
        type=click.Choice(COMPILE_MODES),
        help="max: Inductor tries several kernels, which takes longer; quick: nothing is compiled, and a region's graph "
        "runs operator by operator. [default: default]",
    )(command)


def verify_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--verify",
        cls=OptionalValue,
        without="on",
        type=Verified(),
        metavar="[=N|strict|off]",
        help="Compare one call in N (default: 50) of compiled code with eager mode, on copies, for the whole run, and exit "
        "1 if they differ by more than rounding explains. strict: code that does not give the same bits is not used. off: "
        "not even first calls are compared.",
    )(command)


def live_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--live/--no-live",
        default=True,
        show_default=True,
        help="In a terminal, show the run's progress below the program's output: steps per second, loss, speedup, what is "
        "being compiled.",
    )(command)


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="magpy",
        show_default=True,
        help="The engine: MagPy, torch.compile on the same regions (dynamo; --backend defaults to eager), or both, with "
        "their figures side by side (defaults: 24 steps and --backend inductor).",
    )(command)


def target_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--target",
        metavar="DEVICE",
        help="The device to compile for, which this machine need not have: cuda:sm_80 (A100), cuda:sm_90 (H100) or "
        f"cuda:sm_100 (B200). Needs Triton: pip install triton (or the extra: {DISTRIBUTION}[triton]). "
        f"[default: `target` under [tool.magpy], else {default}]",
    )


def ptx_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--ptx", is_flag=True, help="With --target: the PTX of every kernel is in JSON reports (megabytes), too."
    )(command)


def kernels_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``kernels``."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("entrypoint", metavar="ENTRYPOINT[:LINE]", required=False),
        click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
        target_option("cuda:sm_90"),
        click.option(
            "--line",
            metavar="FILE:LINE",
            help="Only the kernels that compute something of this line, with their Triton source. FILE: a path or its end.",
        ),
        click.option(
            "--format", "output_format", type=click.Choice(("text", "json")), default="text", show_default=True,
            help="json: with Triton source and PTX. The program's own stdout goes to stderr.",
        ),
        steps_option("2"),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the program after this time."
        ),
        click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="The directory to run the program in."),
        python_option,
        color_option,
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``compile``."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("entrypoint", required=False),
        click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
        steps_option("24"),
        mode_option,
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the program after this time."
        ),
        click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="The directory to run the program in."),
        python_option,
        live_option,
        color_option,
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def explain_run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``explain-run``."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("entrypoint", metavar="[REPORT.json | ENTRYPOINT]", required=False),
        click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
        steps_option("0"),
        compile_option,
        mode_option,
        click.option(
            "--format", "output_format", type=click.Choice(("text", "json")), default="text", show_default=True,
            help="json: a list of objects, as `why_not` of a JSON report. The program's own stdout goes to stderr.",
        ),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the program after this time."
        ),
        click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="The directory to run the program in."),
        python_option,
        live_option,
        color_option,
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def paired_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``verify``."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("entrypoint", required=False),
        click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
        steps_option("0"),
        mode_option,
        click.option(
            "--format", "output_format", type=click.Choice(("text", "json")), default="text", show_default=True
        ),
        click.option(
            "--in-place",
            is_flag=True,
            help="Run in the working folder, not in a copy: for programs that need its path. Files are not compared.",
        ),
        click.option(
            "--origin-seconds",
            type=click.FloatRange(0),
            metavar="SECONDS",
            default=LIMITS.origin_seconds,
            show_default=True,
            help="Look so long for the operation that first differs by rounding, in each of two searches.",
        ),
        click.option("--keep", metavar="DIR", help="Keep what the runs have left in DIR: states, output, files."),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop a run after this time."
        ),
        click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="The directory to run the program in."),
        python_option,
        color_option,
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def fail_on_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--fail-on",
        type=click.Choice(SEVERITIES),
        help=f"Exit 1 if there is a finding at least this severe. [default: {default}]",
    )
