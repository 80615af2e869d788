"""Where a fix is offered and where it is not, on texts alone. That it is the same program: test_fixes_recheck.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lsp_server.features.entrypoint import entrypoint_line, is_not_imported
from lsp_server.features.fixes import Fix, Problem, fixes_for
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.settings import Settings
from lsp_server.features.tracking import TrackedFile, Tracker
from magpy_core.findings import Finding, Location, Position, Range, Value
from magpy_core.findings.details import CaptureDetail, Details, NodeDetail, RegionDetail

FILE = "/project/train.py"


def offered(
    text: str,
    code: str,
    marked: str,
    *,
    values: tuple[Value, ...] = (),
    message: str = "m",
    tensors: dict[str, str] | None = None,
    callees: tuple[str, ...] = (),
) -> dict[str, str]:
    """Title to fixed text, for a finding at ``marked``; ``tensors``: what the run saw at the lines that hold a text;
    ``callees``: the functions of a library on the path from ``marked`` on."""
    lines = text.split("\n")
    number = next(i for i, line in enumerate(lines) if marked in line)
    at = lines[number].index(marked)
    where = Range(Position(number, at), Position(number, at + len(marked)))
    at_library = Range(Position(1, 0), Position(1, 9))
    path = (Location(FILE, where), *(Location("/site-packages/torch/t.py", at_library, name) for name in callees))
    finding = Finding(code, message, Location(FILE, where), values=values, path=path if callees else ())
    tracker = Tracker(0, [])
    tracker._files[FILE] = TrackedFile(text)
    run = RunFindings(f"file://{FILE}", tracker, Settings())
    run.findings[finding.key] = finding
    nodes = [
        NodeDetail(f"n{i}", "call", label, [], 0, FILE, next(n for n, line in enumerate(lines, 1) if piece in line), tensor)
        for i, (piece, given) in enumerate((tensors or {}).items())
        for label, tensor in [given.split(" ")]
    ]
    run.details = Details([RegionDetail("r", [CaptureDetail(nodes=nodes)])])
    problem = Problem(finding, where, lines, ast.parse(text), FILE, [run], lambda: entrypoint_line(lines) is not None)
    return {fix.title: _applied(lines, fix) for fix in fixes_for(problem)}


def _applied(lines: list[str], fix: Fix) -> str:
    text = "\n".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for edit in sorted(fix.edits, key=lambda e: e.range.start, reverse=True):
        start, end = (min(starts[p.line] + p.character, len(text)) for p in (edit.range.start, edit.range.end))
        text = text[:start] + edit.text + text[end:]
    ast.parse(text)
    return text


def _has(found: dict[str, str], words: str) -> bool:
    return any(words in title for title in found)


LOG = """\
import torch

LEVEL = 3

class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        print("mean", y.mean().item(), LEVEL)
        return y

net = Net()
for step in range(3):
    out = net(torch.ones(3))
    loss = out.sum()
"""


def test_logging_goes_behind_the_call() -> None:
    found = offered(LOG, "MP102", "y.mean().item()")
    (fixed,) = found.values()
    assert "    out = net(torch.ones(3))\n    print('mean', out.mean().item(), LEVEL)\n    loss" in fixed
    assert fixed.count("print(") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return y\n", "        y = y + 1\n        return y\n"),  # the value is not yet the one returned
        ("        return y\n", "        return y * 1\n"),
        ('print("mean", y.mean().item(), LEVEL)', 'print("mean", y.mean().item(), self.training)'),  # state of the module
        ('print("mean", y.mean().item(), LEVEL)', 'print("mean", y.mean().item(), x.shape)'),  # another local
        ('print("mean", y.mean().item(), LEVEL)', "print(y.mean().item(), *(LEVEL := [1]))"),
        ('print("mean", y.mean().item(), LEVEL)', "self.losses.append(y.mean().item())"),  # no logging
        ("        y = x * 2\n", "        if LEVEL: return x\n        y = x * 2\n"),  # another way out
        ("out = net(torch.ones(3))", "out = net(torch.ones(3)) + 1"),  # its result has no name
        ("    loss = out.sum()", "    loss = out.sum() + net(out).sum()"),  # called twice
        ("net = Net()", "net = Net()\nother = Net()"),  # two of them
        ("net = Net()", "net = torch.nn.DataParallel(Net())"),
        ("net = Net()", "net = Net().share_memory()"),
        ("net = Net()", "net = Net()\nnet.register_forward_hook(print)"),
        ("    loss = out.sum()", "    loss = out.sum()\n    evaluate(net)"),  # handed on
        ("    loss = out.sum()", "    loss = out.sum()\n    LEVEL = step"),  # the name means something else there
        ("LEVEL = 3\n", "LEVEL = 3\nLEVEL = 4\n"),
        ("for step in range(3):\n    out =", "def later(net=net):\n    out ="),
    ],
)
def test_logging_stays_where_moving_might_change_something(old: str, new: str) -> None:
    assert old in LOG
    assert offered(LOG.replace(old, new), "MP102", "y.mean().item()") == {}


def test_a_module_that_is_moved_is_the_same_one() -> None:
    assert offered(LOG.replace("net = Net()", "net = Net().to('cpu').eval()"), "MP102", "y.mean().item()") != {}


def test_a_program_that_another_file_imports_is_not_alone(tmp_path: Path) -> None:
    program, other = tmp_path / "train.py", tmp_path / "test_train.py"
    program.write_text(LOG)
    other.write_text("import trained\nfrom x import trainer  # train\n")
    lines = LOG.split("\n")
    assert is_not_imported(str(program), lines)
    for line in ("import train", "from train import Net", "from . import train", "import os, train as t"):
        other.write_text(f"x = 1\n{line}\n")
        assert not is_not_imported(str(program), lines), line
    assert not is_not_imported(str(program), ["x = 1"])


def test_logging_in_a_library_module_stays() -> None:
    module = LOG.replace("for step in range(3):\n    out = net(torch.ones(3))\n    loss = out.sum()\n", "out = net(1)\n")
    module = module.replace("import torch\n", "import torch as torch\n").replace("net = Net()\n", "")
    assert offered(module, "MP102", "y.mean().item()") == {}


def _branch(arms: str, before: str = "y = self.lin(x) * 2") -> str:
    body = "".join(f"        {line}\n" for line in (before + "\n" + arms).split("\n"))
    return f"import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n{body}        return y\n"


ARMS = "if (y > 0).any():\n    y = y + 1\nelse:\n    y = y - 1"


def test_a_branch_is_computed_both_ways() -> None:
    found = offered(_branch(ARMS), "MP101", "(y > 0).any()")
    assert (
        "        y = torch.where((y > 0).any(), y + 1, y - 1)\n        return y\n"
        in found["Compute both ways and choose with torch.where"]
    )
    assert not _has(found, "torch.cond"), "a region around it is not captured"
    sketch = next(text for title, text in offered(_branch(ARMS), "MPD101", "(y > 0).any()").items() if "torch.cond" in title)
    assert ast.dump(ast.parse(sketch)) == ast.dump(ast.parse(_branch(ARMS))), "a comment and no more"
    assert "# y = torch.cond((y > 0).any(), taken, otherwise, (y,))" in sketch


@pytest.mark.parametrize(
    ("arms", "marked"),
    [
        ("if (y > 0).any():\n    y = y + 1\nelse:\n    y = y - 0.5", "(y > 0).any()"),  # int and float: dtypes may differ
        ("if (y > 0).any():\n    y = y + x\nelse:\n    y = y - x", "(y > 0).any()"),  # shapes may differ
        ("if (y > 0).any():\n    y = self.lin(y)\nelse:\n    y = y - 1", "(y > 0).any()"),  # effects, gradients
        ("if (y > 0).any():\n    y = y.log()\nelse:\n    y = y - 1", "(y > 0).any()"),  # NaN gradients of the side not taken
        ("if (y > 0).any():\n    y += 1\nelse:\n    y = y - 1", "(y > 0).any()"),  # in place
        ("if (y > 0).any():\n    y = y + 1", "(y > 0).any()"),  # the run did not see that it is floating
        ("if (y > 0).any():\n    y = y + 1\n    self.n = 1\nelse:\n    y = y - 1", "(y > 0).any()"),
        ("if (y > 0).any():\n    z = y + 1\nelse:\n    y = y - 1", "(y > 0).any()"),
        ("if (y > 0).any():\n    y = y + 1  # why\nelse:\n    y = y - 1", "(y > 0).any()"),  # a comment would be lost
        ("if y.sum().item() > 0:\n    y = y + 1\nelse:\n    y = y - 1", "y.sum().item() > 0"),  # a Python boolean
        ("if y.any():\n    y = y + 1\nelse:\n    y = y - 1", "y.any()"),  # of bytes it gives bytes
        ("if (y > x).any():\n    y = y + 1\nelse:\n    y = y - 1", "(y > x).any()"),  # which of them is a tensor?
        ("if x is None:\n    pass\nelif (y > 0).any():\n    y = y + 1\nelse:\n    y = y - 1", "(y > 0).any()"),
        ("while (y > 0).any():\n    y = y - 1", "(y > 0).any()"),
        ("if (y > 0).any() and (y > 1).any():\n    y = y + 1\nelse:\n    y = y - 1", "(y > 0).any()"),
    ],
)
def test_a_branch_stays_where_both_ways_might_differ(arms: str, marked: str) -> None:
    assert not _has(offered(_branch(arms), "MP101", marked), "torch.where")


def test_one_side_left_as_it_is_must_be_the_functions_own() -> None:
    arms = "if (y > 0).any():\n    y = y + 0.5"
    seen = {"y = y + 0.5": "add float32[3]"}
    assert _has(offered(_branch(arms), "MP101", "(y > 0).any()", tensors=seen), "torch.where")
    for before in ("y = x", "y = self.lin(x)", "y = x * 2\nself.kept = y", "y = x * 2\ny = y.view(3)"):
        assert not _has(offered(_branch(arms, before), "MP101", "(y > 0).any()", tensors=seen), "torch.where")
    integers = {"y = y + 0.5": "add int64[3]"}
    assert not _has(offered(_branch(arms), "MP101", "(y > 0).any()", tensors=integers), "torch.where")


DATA = "import torch\n\ndef f(x, n):\n    z = (x.data + 1).sum().item()\n    return z\n"


def test_data_is_detached_where_it_is_only_read() -> None:
    found = offered(DATA, "MP102", "(x.data + 1).sum().item()")
    assert list(found.values()) == [DATA.replace("x.data", "x.detach()")]


@pytest.mark.parametrize(
    "new",
    ["x.data.add_(1).sum().item()", "f(x.data).item()", "x.data.T.item()", "torch.data.sum().item()", "x.data[0].item()"],
)
def test_data_stays_where_it_may_be_kept_or_written(new: str) -> None:
    assert offered(DATA.replace("(x.data + 1).sum().item()", new), "MP102", new) == {}


SCALE = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        self.scale = 1.0

    def forward(self, x):
        return x * self.scale

net = Net()
for step in range(3):
    net.scale = 1 / (step + 1)
    out = net(torch.ones(3))
"""
VARIES = (Value("self.scale", "1.0 -> 0.5"),)
SEEN = {"return x * self.scale": "mul float32[3]"}


def test_a_number_becomes_a_tensor_where_it_is_set() -> None:
    found = offered(SCALE, "MP202", "self.scale", values=VARIES, tensors=SEEN)
    (fixed,) = found.values()
    assert "    net.scale = torch.tensor(1 / (step + 1), dtype=torch.float64)\n" in fixed


@pytest.mark.parametrize(
    ("old", "new", "values", "seen"),
    [
        ("x *", "x *", (Value("self.scale", "1 -> 2"),), SEEN),  # whole numbers may be sizes and indices
        ("x *", "x *", VARIES, {}),  # the run saw nothing there
        ("x *", "x *", VARIES, {"return x * self.scale": "mul float32[]"}),  # a 0-d tensor would get float64
        ("x *", "x *", VARIES, {"return x * self.scale": "mul int64[3]"}),
        ("x * self.scale", "2 * self.scale * x", VARIES, {"return 2": "mul float32[3]"}),  # Python multiplies two numbers
        ("x * self.scale", "x * self.c * self.scale", VARIES, {"return x": "mul float32[3]"}),  # one node for two operations
        ("x * self.scale", "x.pow(self.scale)", VARIES, {"return x": "pow float32[3]"}),
        ("out = net", "print(net.scale)\n    out = net", VARIES, SEEN),  # shown elsewhere
        ("net.scale = 1", "net.scale += 1", VARIES, SEEN),
        ("net.scale = 1 / (step + 1)", "net.scale = 1.0", VARIES, SEEN),
        ("out = net", "net.scale = step * 0.5\n    out = net", VARIES, SEEN),  # set at two places
        ("import torch\n", "import torch as t\n", VARIES, SEEN),
    ],
)
def test_a_number_stays_where_a_tensor_might_differ(
    old: str, new: str, values: tuple[Value, ...], seen: dict[str, str]
) -> None:
    text = SCALE.replace("torch.", "t.") if "as t" in new else SCALE
    assert old in text
    assert offered(text.replace(old, new, 1), "MP202", "self.scale", values=values, tensors=seen) == {}


SIZES = SCALE.replace("net(torch.ones(3))", "net(x)").replace(
    "    net.scale = 1 / (step + 1)\n", "    x = torch.ones(3 + step)\n"
)
GROWS = (Value("x.shape[0]", "3 -> 4"),)


def test_a_dimension_is_marked_before_the_call() -> None:
    found = offered(SIZES, "MPD201", "def forward", values=GROWS, message="compiled (version 2 of at most 8)")
    (fixed,) = found.values()
    assert "    x = torch.ones(3 + step)\n    torch._dynamo.maybe_mark_dynamic(x, 0)\n    out = net(x)\n" in fixed


@pytest.mark.parametrize(
    ("values", "version", "old", "new"),
    [
        ((Value("x.shape[0]", "1 -> 4"),), 2, "", ""),  # 1 is compiled for by itself: the mark would be an error
        (GROWS, 3, "", ""),  # it was dynamic and changed again: the program needs the size
        (GROWS, 2, "net(x)", "net(x * 2)"),  # nothing to mark
        (GROWS, 2, "import torch\n", "from torch import nn\n"),
        ((Value("x.dtype", "a -> b"),), 2, "", ""),
    ],
)
def test_a_dimension_is_not_marked_where_it_might_fail(values: tuple[Value, ...], version: int, old: str, new: str) -> None:
    text = SIZES.replace(old, new, 1) if old else SIZES
    assert offered(text, "MPD201", "def forward", values=values, message=f"(version {version} of at most 8)") == {}


DETECTED = ("TransformerEncoder.forward", "_detect_is_causal_mask")


@pytest.mark.parametrize("outcome", ["True", "False"])
def test_what_torch_found_out_of_a_mask_can_be_said(outcome: str) -> None:
    call = "self.blocks(self.embed(x), mask=self.mask[:t, :t])"
    values = (Value("value", outcome),)
    fixes = offered(f"y = 1 + {call} * 2\n", "MP101", call, values=values, callees=DETECTED)
    fixed = f"y = 1 + {call[:-1]}, is_causal={outcome}) * 2\n"
    assert fixes == {f"Pass `is_causal={outcome}`, if `mask` is {'always' if outcome == 'True' else 'never'} causal": fixed}
    decoder = offered(
        "decode(y, z, tgt_mask=m)\n", "MP101", "decode(y, z, tgt_mask=m)", values=values,
        callees=("TransformerDecoder.forward", "_detect_is_causal_mask"),
    )  # fmt: skip
    assert list(decoder.values()) == [f"decode(y, z, tgt_mask=m, tgt_is_causal={outcome})\n"]


@pytest.mark.parametrize(
    ("call", "outcomes", "callees"),
    [
        ("f(x, mask=m)", ("True", "False"), DETECTED),
        ("f(x, mask=m)", (), DETECTED),
        ("f(x, m)", ("True",), DETECTED),
        ("f(x, mask=m, is_causal=None)", ("True",), DETECTED),
        ("f(x, mask=m, **more)", ("True",), DETECTED),
        ("f(x, mask=m)", ("True",), ("Wrapper.forward", *DETECTED)),
        ("f(x, mask=m)", ("True",), ("TransformerEncoder.forward", "another")),
    ],
)
def test_a_mask_that_may_differ_stays(call: str, outcomes: tuple[str, ...], callees: tuple[str, ...]) -> None:
    values = tuple(Value("value", outcome) for outcome in outcomes)
    assert offered(f"y = {call}\n", "MP101", call, values=values, callees=callees) == {}


@pytest.mark.parametrize(
    ("compared", "fixed"),
    [
        ("a.x is 3", "a.x == 3"),
        ("f(a) is not  b", "f(a) !=  b"),
        ("a == b", ""),
        ("a is b is c", ""),
        ("(a) is b", ""),
    ],
)
def test_values_are_compared_by_value(compared: str, fixed: str) -> None:
    fixes = offered(f"y = [{compared}]\n", "MP103", compared)
    assert list(fixes.values()) == ([f"y = [{fixed}]\n"] if fixed else [])
