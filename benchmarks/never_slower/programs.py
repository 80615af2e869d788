"""The programs: the examples, programs whose control flow depends on data, and the findings corpus. Key type: Program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.models import EXAMPLES

HERE = Path(__file__).parent
CORPUS = HERE.parents[1] / "tests" / "programs" / "findings"


@dataclass(frozen=True)
class Program:
    """``command(n, folder)``: script and arguments for ``n`` units of work, with files of its own in ``folder``."""

    name: str
    command: Callable[[int, str], list[str]]
    probe: int = 20  # units that show how long one takes


def _example(name: str) -> Program:
    def command(n: int, folder: str) -> list[str]:
        more = ["--checkpoint", str(Path(folder) / "checkpoint.pt")] if name == "char_gpt" else []
        return [str(EXAMPLES / name / "train.py"), "--device", "cpu", "--steps", str(n), *more]

    return Program(name, command)


def _dynamic(name: str) -> Program:
    return Program(name, lambda n, folder: [str(HERE / "dynamic" / f"{name}.py"), "--steps", str(n)])


def _repeated(file: Path) -> Program:
    return Program(file.stem, lambda n, folder: [str(HERE / "repeat.py"), str(file), str(n)], probe=10)


def findings_corpus() -> list[Program]:
    """Those of its programs that train, and end as programs do."""
    files = sorted(file for file in CORPUS.glob("*.py") if not file.stem.startswith("mp9"))
    return [_repeated(file) for file in files if ".backward()" in file.read_text(encoding="utf-8")]


PROGRAMS = {
    program.name: program
    for program in [
        *map(_example, ("char_gpt", "early_exit", "image_cnn", "hf_bert")),
        *map(_dynamic, ("decoder", "captioning", "sampling")),
    ]
}
