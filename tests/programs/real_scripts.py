"""Whole scripts as their users have them, in ``real/``: what each is run with, and what a run leaves behind.

``python -m tests.programs.real_scripts NAME`` prints what the runs of a script differ in, its regions and its findings.
Key types: Script, Left. Key functions: prepare, plain_run, magpy_run, differences.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from magpy_core.findings import Finding
from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import PYTHON, Ran, environment, under_magpy

FOLDER = Path(__file__).with_name("real")
_LIMIT = 280.0  # seconds that one run may take


@dataclass(frozen=True)
class Script:
    """``lines``: the command lines of a session, one after the other, each a script with its arguments."""

    name: str
    lines: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Packages."""

    @property
    def missing(self) -> list[str]:
        return [name for name in self.needs if find_spec(name) is None]


SCRIPTS = {
    script.name: script
    for script in [
        Script(
            "nanogpt",
            (
                "train.py config/tiny.py",
                "train.py config/tiny.py --init_from=resume --max_iters=50",
                "sample.py config/sample_tiny.py --num_samples=2",
            ),
        ),
        Script("nanogpt_bfloat16", ("train.py config/tiny.py --dtype=bfloat16 --max_iters=20",)),
        Script(
            "adder",
            (
                "adder.py --trainer.max_iters=41 --trainer.num_workers=2 --trainer.batch_size=16 --system.eval_interval=20"
                " --system.eval_batches=2",
            ),
        ),
        Script(
            "word_language_model",
            (
                "main.py --epochs 3 --emsize 24 --nhid 24 --bptt 10 --batch_size 8 --log-interval 5",
                "generate.py --words 60 --log-interval 20",
            ),
        ),
        Script(
            "word_transformer",
            (
                "main.py --model Transformer --epochs 3 --emsize 24 --nhid 24 --bptt 10 --batch_size 8 --log-interval 5"
                " --lr 0.01 --use-optimizer",
                "generate.py --words 30 --log-interval 20",
            ),
        ),
        Script("vae", ("main.py --epochs 3 --batch-size 50 --log-interval 5",)),
        Script(
            "dcgan",
            (
                "main.py --dataset fake --outf out --manualSeed 7 --images 160 --batchSize 16 --imageSize 32 --nz 16 --ngf 8"
                " --ndf 8 --niter 2",
                "main.py --dataset fake --outf out --manualSeed 7 --images 160 --batchSize 16 --imageSize 32 --nz 16 --ngf 8"
                " --ndf 8 --dry-run --netG out/netG_epoch_1.pth --netD out/netD_epoch_1.pth",
            ),
        ),
        Script("time_sequence", ("train.py --steps 3 --future 20",)),
        Script("mnist", ("main.py --epochs 3 --batch-size 32 --test-batch-size 100 --workers 1 --save-model",)),
        Script(
            "imagenet",
            (
                "main.py --epochs 3 -b 32 -j 1 -p 4 --seed 5",
                "main.py --epochs 4 -b 32 -j 0 -p 4 --seed 5 --resume checkpoint.pth.tar",
                "main.py -e -b 32 -j 0 -p 4 --resume model_best.pth.tar",
            ),
        ),
        Script("forward_forward", ("main.py --epochs 60 --train_size 200 --save_model",)),
        Script("graph_network", ("main.py --epochs 60 --include-bias",)),
        Script("hogwild", ("main.py --epochs 2 --num-processes 1 --save_model",)),
        Script("reinforce", ("reinforce.py --episodes 40", "actor_critic.py --episodes 30"), needs=("gymnasium",)),
        Script(
            "hf_trainer",
            tuple(
                "finetune.py --model_name_or_path tiny-model --data_dir data --output_dir out --use_cpu --do_train --do_eval"
                " --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --learning_rate 3e-3 --warmup_steps 5"
                " --lr_scheduler_type cosine --logging_steps 5 --eval_strategy steps --eval_steps 10 --save_steps 10"
                f" --save_total_limit 2 --load_best_model_at_end --report_to none --disable_tqdm true {more}"
                for more in ("--num_train_epochs 2", "--num_train_epochs 3 --do_predict")
            ),
            needs=("transformers", "accelerate"),
        ),
        Script(
            "lightning_module",
            (
                "train.py --epochs 4",
                "train.py --epochs 6 --resume out/checkpoints/last.ckpt --accumulate 2 --workers 1 --precision bf16-mixed",
            ),
            needs=("lightning",),
        ),
        Script(
            "accelerate_loop",
            (
                "train.py --epochs 3",
                "train.py --epochs 4 --resume-from-checkpoint out/step_16 --mixed-precision bf16",
            ),
            needs=("accelerate",),
        ),
    ]
}

SOURCES = {"nanogpt_bfloat16": "nanogpt", "word_transformer": "word_language_model"}


@dataclass
class Left:
    """What the lines of a script have left behind: exit statuses, both outputs without times, files."""

    statuses: list[int] = field(default_factory=list)
    output: str = ""
    errors: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    runs: list[Ran] = field(default_factory=list)
    """Those of MagPy."""

    def take_files(self, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                self.files[str(path.relative_to(folder))] = path.read_bytes()


def prepare(script: Script, folder: Path) -> None:
    """Copies the script to ``folder``, which does not exist yet, with the data that it reads."""
    shutil.copytree(FOLDER / SOURCES.get(script.name, script.name), folder, ignore=shutil.ignore_patterns("__pycache__"))
    if (folder / "prepare.py").exists():
        _python(folder, "prepare.py").check_returncode()


def plain_run(script: Script, folder: Path, before: Path) -> Left:
    """``before``: where the folder is copied to before each line, as ``0``, ``1``, ..."""
    left = Left()
    for number, line in enumerate(script.lines):
        shutil.copytree(folder, before / str(number))
        done = _python(folder, *shlex.split(line))
        _take(left, done.returncode, done.stdout, done.stderr)
    left.take_files(folder)
    return left


def as_before(folder: Path, before: Path, number: int) -> None:
    """Makes the folder what it was before a line: paths, which are in checkpoints, are the same in all runs."""
    shutil.rmtree(folder)
    shutil.copytree(before / str(number), folder)


def magpy_run(script: Script, folder: Path, **options: Any) -> Left:
    """In the foreground no clock decides what is recorded, and what serves."""
    left = Left()
    for line in script.lines:
        ran = magpy_line(line, folder, mode="run", steps=0, **options)
        outcome = ran.outcome
        status = outcome.exit_code if outcome.exit_code is not None else -(outcome.signal or 0)
        _take(left, status, ran.stdout, ran.stderr)
        left.runs.append(ran)
    left.take_files(folder)
    return left


def magpy_line(line: str, folder: Path, **options: Any) -> Ran:
    name, *args = shlex.split(line)
    options = {"backend": "eager", "compile": "foreground", "timeout": _LIMIT, **options}
    return under_magpy(folder, script=name, args=args, session_factory=SESSIONS["magpy"], env=environment(**_ENV), **options)


#: No library is to look for anything outside.
_ENV = {"HF_HUB_OFFLINE": "1", "WANDB_DISABLED": "true"}


def _python(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [PYTHON, *args],
        cwd=folder,
        env=environment(**_ENV),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_LIMIT,
        check=False,
    )


def _take(left: Left, status: int, output: bytes, errors: bytes) -> None:
    left.statuses.append(status)
    left.output += timeless(output)
    left.errors += timeless(errors)


_TIMES = re.compile(
    r"(?P<what>\b(?:time:?|iter_dt|ms/batch|mfu|\w*_runtime\W+|\w*_per_second\W+)\s*)-?[\d:.]+(?:e-?\d+)?"
    r"|(?<=Time|Data) +[\d.]+ \( *[\d.]+\)"
)
_PROGRESS = re.compile(r"\r? *\d+%\|[^\r\n\]]*\] *")


def timeless(text: bytes) -> str:
    """``text`` without what says how fast a run was."""
    kept = _PROGRESS.sub("", text.decode("utf-8", errors="backslashreplace"))
    return _TIMES.sub(lambda match: f"{(match['what'] or '').strip()} TIME", kept)


_TEXTS = {".json", ".txt", ".csv", ".yaml", ".md"}


def differences(plain: Left, ours: Left) -> Iterator[str]:
    """Everything that ``ours`` is not equal to ``plain`` in. Numbers in files are compared bit by bit."""
    if plain.statuses != ours.statuses:
        yield f"exit status: {plain.statuses}, {ours.statuses}"
    for what in ("output", "errors"):
        lines = [getattr(one, what).splitlines() for one in (plain, ours)]
        if lines[0] != lines[1]:
            at = next((i for i, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]), min(map(len, lines)))
            yield f"{what}, line {at + 1}: {lines[0][at : at + 3]}, {lines[1][at : at + 3]}"
    if missing := plain.files.keys() ^ ours.files.keys():
        yield f"files that only one has: {sorted(missing)}"
    for name in sorted(plain.files.keys() & ours.files.keys()):
        first, second = plain.files[name], ours.files[name]
        if Path(name).suffix in _TEXTS:
            same = timeless(first) == timeless(second)
        else:
            same = first == second or (_tensors(first) is not None and _tensors(first) == _tensors(second))
        if not same:
            yield f"{name} differs"


def _tensors(saved: bytes) -> dict[str, bytes] | None:
    """What torch.save has written: the storages, and the pickle as it is read. None: something else."""
    if not zipfile.is_zipfile(io.BytesIO(saved)):
        return None
    import torch

    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        members = {name.split("/", 1)[-1]: archive.read(name) for name in archive.namelist()}
    members.pop(".data/serialization_id", None)  # a checksum of the pickle
    # The same objects may be one object or two of equal value in the pickle: an interned string, say.
    members["data.pkl"] = repr(torch.load(io.BytesIO(saved), weights_only=False, map_location="cpu")).encode()
    return members


def shown(findings: list[Finding], folder: Path) -> Iterator[tuple[str, str, Finding]]:
    """The code, and the text of the line, of each finding that is shown by default."""
    for finding in findings:
        if finding.is_actionable:
            yield finding.code, line_of(finding, folder), finding


def line_of(finding: Finding, folder: Path) -> str:
    place = next((one for one in (finding.location, *reversed(finding.path)) if Path(one.file).is_relative_to(folder)), None)
    if place is None:
        return finding.location.file
    return Path(place.file).read_text(encoding="utf-8").splitlines()[place.range.start.line].strip()


def _main(name: str, *options: str) -> None:
    script = SCRIPTS[name]
    with tempfile.TemporaryDirectory() as base:
        folder, before = Path(base) / name, Path(base) / "before"
        prepare(script, folder)
        expected = plain_run(script, folder, before)
        as_before(folder, before, 0)
        if "--output" in options:
            print(expected.output, expected.errors, sep="\n---\n")
        left = magpy_run(script, folder, backend="inductor" if "--inductor" in options else "eager")
        print("differences:", *differences(expected, left), sep="\n  ")
        for line, ran in zip(script.lines, left.runs, strict=True):
            print(f"run {line}: {ran.outcome.kind} {ran.outcome.message}")
            _tell(ran, folder)
        for number, line in enumerate(script.lines):
            as_before(folder, before, number)
            ran = magpy_line(line, folder, mode="check", steps=3)
            print(f"check {line}: {ran.outcome.kind} {ran.outcome.message}")
            _tell(ran, folder)


def _tell(ran: Ran, folder: Path) -> None:
    for region in ran.outcome.report.regions:
        print(
            f"  {region.kind} {region.name} {Path(region.file).name}:{region.line}-{region.last_line}: {region.calls} calls,"
            f" {region.hits} hits, {region.captures} captures, {'one graph' if region.complete else 'cut'},"
            f" {region.graphs} graphs"
        )
    for code, line, finding in shown(ran.outcome.report.findings, folder):
        place = f"{Path(finding.location.file).name}:{finding.location.range.start.line + 1}"
        print(f"  {code} {finding.severity.value} {place} `{line}` x{finding.count}\n    {finding.message}")
        print(f"    hint: {finding.advice}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
