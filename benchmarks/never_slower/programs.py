"""The programs: the examples, programs whose control flow depends on data, a short step, real scripts with torch's default
threads, and the findings corpus. Key type: Program."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.models import EXAMPLES
from tests.programs.real_scripts import SCRIPTS, prepare

HERE = Path(__file__).parent
CORPUS = HERE.parents[1] / "tests" / "programs" / "findings"


@dataclass(frozen=True)
class Program:
    """``command(n, folder)``: script and arguments for ``n`` units of work, with files of its own in ``folder``.
    ``probe``: units that show how long one takes; ``threads``: as many as torch takes by itself, or one. ``prepare``: puts
    what it needs into a new folder."""

    name: str
    command: Callable[[int, str], list[str]]
    probe: int = 20
    threads: Literal["default", "one"] = "one"
    prepare: Callable[[Path], None] = Path.mkdir


def _example(name: str) -> Program:
    def command(n: int, folder: str) -> list[str]:
        more = ["--checkpoint", str(Path(folder) / "checkpoint.pt")] if name == "char_gpt" else []
        return [str(EXAMPLES / name / "train.py"), "--device", "cpu", "--steps", str(n), *more]

    return Program(name, command)


def _dynamic(name: str) -> Program:
    return Program(name, lambda n, folder: [str(HERE / "dynamic" / f"{name}.py"), "--steps", str(n)])


def _short_step(name: str, threads: Literal["default", "one"]) -> Program:
    return Program(name, lambda n, folder: [str(HERE / "six_layers.py"), "--steps", str(n)], 500, threads)


def _real(name: str, line: str, probe: int) -> Program:
    """``line``: script and arguments; ``{n}`` is how many rounds of training it does."""
    script = SCRIPTS[name]
    return Program(
        f"real_{name}",
        lambda n, folder: shlex.split(line.format(n=n)),
        probe,
        "default",
        lambda folder: prepare(script, folder),
    )


def lengthened(source: str, n: int) -> str:
    """The program with ``n`` rounds of its training loop, or its last one, or ``n`` times the statement that trains."""
    tree = ast.parse(source)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and _is_counted(node)]
    training = [loop for loop in loops if _trains(loop)]
    last = [loop for loop in loops if loop in tree.body][-1:]
    if chosen := training[-1:] or last:  # the innermost comes last
        chosen[0].iter = _range(n)
    else:
        step = next(one for one in tree.body if _trains(one))
        tree.body[tree.body.index(step)] = ast.For(ast.Name("_", ast.Store()), _range(n), [step], [])
    return ast.unparse(ast.fix_missing_locations(tree))


def _trains(node: ast.AST) -> bool:
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute))
    return any(call.func.attr == "backward" for call in calls if isinstance(call.func, ast.Attribute))


def _is_counted(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _range(n: int) -> ast.Call:
    return ast.Call(ast.Name("range", ast.Load()), [ast.Constant(n)], [])


def _lengthened(file: Path) -> Program:
    def command(n: int, folder: str) -> list[str]:
        script = Path(folder) / file.name
        libraries = f"import sys\nsys.path.append({str(file.parent / 'site-packages')!r})\n"
        script.write_text(libraries + lengthened(file.read_text(encoding="utf-8"), n), encoding="utf-8")
        return [str(script)]

    return Program(file.stem, command)


def findings_corpus() -> list[Program]:
    """Those of its programs that train, and end as programs do."""
    files = sorted(file for file in CORPUS.glob("*.py") if not file.stem.startswith("mp9"))
    return [_lengthened(file) for file in files if ".backward()" in file.read_text(encoding="utf-8")]


PROGRAMS = {
    program.name: program
    for program in [
        *map(_example, ("char_gpt", "early_exit", "image_cnn", "hf_bert")),
        *map(_dynamic, ("decoder", "captioning", "sampling")),
        _short_step("short_step", "one"),
        _short_step("short_step_all_threads", "default"),
        _real("nanogpt", "train.py config/tiny.py --max_iters={n} --eval_interval=500 --log_interval=100 --n_embd=64", 50),
        _real("word_language_model", "main.py --epochs {n} --emsize 64 --nhid 64 --bptt 20 --batch_size 8", 2),
        _real("vae", "main.py --epochs {n} --batch-size 50", 2),
        _real("mnist", "main.py --epochs {n} --batch-size 32 --test-batch-size 100", 1),
        _real(
            "hf_trainer",
            "finetune.py --model_name_or_path tiny-model --data_dir data --output_dir out --use_cpu --do_train"
            " --per_device_train_batch_size 8 --learning_rate 1e-3 --logging_steps 50 --save_strategy no --report_to none"
            " --eval_strategy steps --eval_steps 100000 --metric_for_best_model loss"
            " --disable_tqdm true --num_train_epochs {n}",
            2,
        ),
        _real("graph_network", "main.py --epochs {n} --include-bias --val-every 100", 50),
    ]
}
