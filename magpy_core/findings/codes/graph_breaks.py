"""MP1xx: why a region is not one complete operator graph. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP101",
        "data-dependent-branch",
        "Control flow depends on a tensor's value",
        Severity.WARNING,
        has_fix=True,
        reason="The branch taken here is known only after the tensor has been computed.",
        explanation="""\
An `if`, `while`, `assert`, `and`, `or`, `not` or conditional expression converts a tensor to a `bool`. Its truth
value is data: it can differ on the next call even if everything that MagPy can check before the call (types, shapes,
attributes, globals) stays the same.

An operator graph contains no Python branches, so the graph is cut here. The capture covers the side that the program
took this time; the other side is captured when a call first takes it. `torch.compile` breaks the graph at the same
place, and skips the whole function if the branch is inside a loop.

On every call the CPU waits until the tensor has been computed (on a GPU, this drains the launch queue), the compiler
can't fuse operators across the branch, and every new outcome costs another capture.""",
        hints=(
            "Compute both sides and choose between them with `torch.where(condition, a, b)` if both are cheap.",
            "If the branch is a sanity check, move the check out of the region.",
            "If the branch really depends on Python data (a flag, a step number), branch on that and not on a tensor.",
        ),
        example="""\
def forward(self, x):
    h = self.encoder(x)
    if h.abs().max() > 10.0:  # MP101
        h = h / 10.0
    return self.head(h)
""",
        fixed="""\
def forward(self, x):
    h = self.encoder(x)
    h = torch.where(h.abs().max() > 10.0, h / 10.0, h)
    return self.head(h)
""",
    ),
    Code(
        "MP102",
        "host-read",
        "A tensor's value is read by Python",
        Severity.WARNING,
        has_fix=True,
        reason="Python needs the value itself, so everything that it depends on must be computed first.",
        explanation="""\
The program converts a tensor to a Python value: `.item()`, `.tolist()`, `.numpy()`, `int(t)`, `float(t)`,
`f"{t}"`, `x in t` and the like. No check made before the call can predict this value.

The operator graph recorded so far must finish before Python can continue, so the graph is cut at the read.
If the value only leaves the region (it is logged or returned), nothing after the cut depends on it. If control flow
depends on it, each new value may need another capture.

Each read synchronises with the device and splits the graph in two: no operators are fused across the cut, and
activations that could have stayed in registers are written to memory.""",
        hints=(
            "Keep the value as a tensor (`loss.detach()`) and read it outside the region, or only every n-th step.",
            "Do the arithmetic on the 0-d tensor instead of on `.item()`.",
            "Collect metrics in a tensor on the device and read them once at the end of the epoch.",
        ),
        example="""\
for step, (x, y) in enumerate(loader):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    running += loss.item()  # MP102
""",
        fixed="""\
running = torch.zeros(())
for step, (x, y) in enumerate(loader):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    running += loss.detach()
    if step % 100 == 99:
        print(running.item() / 100)
""",
    ),
    Code(
        "MP103",
        "host-call",
        "A call whose result can't be guarded (clock, random, identity)",
        Severity.WARNING,
        reason="The result doesn't follow from anything that a guard can check, so a replay can't reuse it.",
        explanation="""\
The result of this expression is not a function of values that MagPy can check: it reads a clock
(`time.perf_counter`), Python's or NumPy's random numbers, `uuid`, `id()` or `hash()` of an object, or the current
thread. The same holds for `is` and `is not` between two numbers or two strings: whether equal values are the same
object depends on CPython's caches, not on the values.

A replay skips the Python of the region. It would repeat the first result forever, which would be wrong. So the region
is not compiled: it runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "Move the call out of the region and pass its result in as an argument.",
            "Draw random numbers with torch, or one by one with `random` and `numpy.random`: a replay draws them again.",
            "Compare numbers and strings with `==`, not with `is`.",
            "If the function always returns the same result for the same arguments, declare it pure: "
            '`[tool.magpy.call-policy]` with `"package.function" = "pure"`.',
        ),
        example="""\
def forward(self, x):
    for block in self.blocks:
        started = time.perf_counter()  # MP103
        x = block(x)
        self.seconds += time.perf_counter() - started  # MP103
    return x
""",
        fixed="""\
def forward(self, x):
    for block in self.blocks:
        x = block(x)
    return x


started = time.perf_counter()  # around the call of the region
y = model(x)
seconds += time.perf_counter() - started
""",
    ),
    Code(
        "MP104",
        "unknown-call",
        "A call into unknown native code",
        Severity.WARNING,
        reason="MagPy doesn't know what this native function reads, writes or returns.",
        explanation="""\
The region calls a function that is implemented in C, C++ or Rust and is in none of MagPy's tables: usually from an
extension module of your own or of a library. Python functions are monitored instruction by instruction; native
code is opaque. It could read a file, change its arguments or keep a reference to them. The same applies to external
objects of a class written in C (a hash object, a compressor, a parser, a NumPy array): their contents are not in
attributes, so no guard can check them.

MagPy never guesses: the region is not compiled and runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "If the function is pure (same result for the same arguments, no side effects), declare it: "
            '`[tool.magpy.call-policy]` with `"package.function" = "pure"`.',
            'If it is a tensor operator that works through torch\'s dispatcher, use the policy `"torch"`.',
            "Register your own kernels with `torch.library.custom_op`: then they are recorded as operators.",
            "Move the call out of the region, for example into the data loader.",
        ),
        example="""\
import fast_tokenizer  # a compiled extension


def forward(self, text):
    ids = fast_tokenizer.encode(text)  # MP104
    return self.embedding(torch.tensor(ids))
""",
        fixed="""\
def collate(batch):
    return torch.tensor([fast_tokenizer.encode(text) for text in batch])


def forward(self, ids):
    return self.embedding(ids)
""",
    ),
    Code(
        "MP105",
        "unrecorded-operator",
        "A tensor operation ran outside any recorded call",
        Severity.WARNING,
        reason="A tensor operator ran that the operator graph does not contain, so replaying the graph would be wrong.",
        explanation="""\
MagPy records tensor operations twice: as the torch calls in your Python code, and at the dispatcher as the operators
that PyTorch executes. Here the dispatcher ran an operator that belongs to no recorded call, or a tensor of unknown
origin entered the graph (for example one built by `torch.from_numpy` from memory that other code changes, or one
created inside native code).

A graph without that operator would silently compute different results. So the capture is refused at this line and the
region runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "Create the tensor outside the region and pass it in, or keep it as a module buffer.",
            "Replace NumPy calls in the middle of the region by the equivalent torch functions.",
            "If a C++ extension runs the operator, register it with `torch.library` so that torch sees one operator.",
        ),
        example="""\
def forward(self, x):
    return x + torch.from_numpy(self.mask)  # MP105
""",
        fixed="""\
def forward(self, x):
    return x + self.mask  # self.register_buffer("mask", torch.from_numpy(mask)) in __init__
""",
    ),
    Code(
        "MP106",
        "unsupported-operator",
        "A torch feature that cannot be recorded safely",
        Severity.WARNING,
        reason="MagPy can't guarantee that a graph with this torch feature replays exactly what eager mode does.",
        explanation="""\
The region uses a torch feature that MagPy can't record and replay exactly: a scripted module, operations on sparse or
quantised storage, resizing or replacing a tensor's storage (`set_`, `resize_`, assignment to `.data`), autograd on
another thread, a tensor subclass with its own dispatch, or an explicit `torch.Generator`.

The message names the feature. The capture is refused at this line and the region runs as plain Python: its results
are correct, but it is not faster.""",
        hints=(
            "The message names the feature; often an ordinary operator has the same effect "
            "(`tensor.copy_()` under `no_grad` instead of `tensor.data = ...`).",
            "Split the module so that the part using the feature is called on its own, outside the other regions.",
        ),
        example="""\
def forward(self, x):
    self.codebook.data = F.normalize(self.codebook.data, dim=-1)  # MP106
    return x @ self.codebook.t()
""",
        fixed="""\
def forward(self, x):
    return x @ F.normalize(self.codebook, dim=-1).t()
""",
    ),
    Code(
        "MP107",
        "opaque-autograd-function",
        "A custom autograd.Function that depends on external state",
        Severity.WARNING,
        reason="The backward of this autograd.Function can't be compiled as part of the graph.",
        explanation="""\
A custom `torch.autograd.Function` runs its `forward` now and its `backward` later, during the backward pass.
MagPy can record it as one differentiable operator only if both depend on nothing but their arguments and what was
saved on `ctx`. This function reads or changes other state (a global that is not a module, a closure variable, an
external object), or is called from inside a library, where its call can't be recorded as one operator.

A compiler traces `backward` only once, so the gradient could silently be that of an earlier call. The region
therefore runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "Pass what `forward` and `backward` need as arguments, and keep tensors with `ctx.save_for_backward`.",
            "Write it as `torch.library.custom_op` with `register_autograd`, which the compiler understands.",
            "If it only rescales a gradient, an ordinary expression is often enough: "
            "`x * scale + (x - x * scale).detach()`.",
        ),
        example="""\
SCALE = {"value": 1.0}


class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * SCALE["value"]


def forward(self, x):
    return self.head(ScaleGradient.apply(self.body(x)))  # MP107
""",
        fixed="""\
class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        (scale,) = ctx.saved_tensors
        return grad * scale, None
""",
    ),
    Code(
        "MP108",
        "external-iterator",
        "An external generator or native iterator is advanced",
        Severity.WARNING,
        reason="The next value depends on the iterator's internal state, which can't be checked or restored.",
        explanation="""\
The region takes the next value from an iterator that was created outside of it: a generator, a DataLoader iterator,
a file, `itertools.cycle`. Reading the iterator's state would advance it. So MagPy can neither check the state before a
call nor restore it when a call has to be repeated.

The region is not compiled: it runs as plain Python and gains nothing from compilation.""",
        hints=(
            "Take the next value outside the region and pass it in.",
            "If the sequence is small and fixed, keep it as a list or tuple and index it.",
        ),
        example="""\
def train_step(model, batches, optimizer):
    x, y = next(batches)  # MP108
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
""",
        fixed="""\
def train_step(model, batch, optimizer):
    x, y = batch
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
""",
    ),
    Code(
        "MP109",
        "data-dependent-shape",
        "A shape depends on tensor data and Python reads it",
        Severity.WARNING,
        reason="The size of the result depends on tensor data, and Python reads that size.",
        explanation="""\
The number of elements that some operators return depends on the data: `nonzero`, `x[mask]`, `unique`,
`repeat_interleave`, `torch.where(condition)`. The operator itself can be part of a graph. But here Python reads the
resulting size (`len`, `.shape`, a loop over the rows, a tensor created with that size), which is known only after the
operator has run.

Compiling backends (`inductor`, `aot_eager`) refuse such a read: the region runs as plain Python and gains nothing from
compilation. With `--backend eager`, most of these sizes are numbers of the graph and the region is captured.""",
        hints=(
            "Keep the full size and a mask: `torch.where(mask, x, 0)` and a masked sum instead of `x[mask]`.",
            "Pad to a fixed upper bound (`torch.topk` with a constant k, or pad and slice later).",
            "Use the size as a tensor (`mask.sum()`) if you only do arithmetic with it.",
        ),
        example="""\
def forward(self, x, mask):
    picked = x[mask]
    return picked.sum(0) / picked.shape[0]  # MP109
""",
        fixed="""\
def forward(self, x, mask):
    weight = mask.unsqueeze(-1).to(x.dtype)
    return (x * weight).sum((0, 1)) / weight.sum()
""",
    ),
    Code(
        "MP110",
        "unrebuildable-object",
        "Replay can't rebuild an object that leaves the region",
        Severity.WARNING,
        reason="Replay would have to create this object, and there is no safe way to create one of its type.",
        explanation="""\
The region creates an object that outlives it (the object is returned, or stored in an external object). A replay skips
the Python that created it, so it has to rebuild an equal one. MagPy can do that for tensors, numbers, strings, the
built-in containers, dataclasses, named tuples, enums and plain Python classes. It can't for this object: an open file,
a lock, a running generator, a native object, a class with a custom metaclass, or an exception that was raised and
caught (it holds the frames it passed through).

Without the object the result would be wrong, so the region runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "Return plain data (tensors, tuples, dicts, dataclasses) and create the special object in the caller.",
            "Create the object once, outside the region, and use it inside.",
        ),
        example="""\
def forward(self, x):
    hidden = [block(x) for block in self.blocks]
    return (h.mean() for h in hidden)  # MP110
""",
        fixed="""\
def forward(self, x):
    hidden = [block(x) for block in self.blocks]
    return [h.mean() for h in hidden]
""",
    ),
    Code(
        "MP111",
        "untracked-state",
        "State is accessed in a way that the monitor can't follow",
        Severity.WARNING,
        reason="MagPy knows no access path to this value, so it can't check the value before the next call.",
        explanation="""\
The region uses an external object that it reached without an access path: through the `vars()` of a class, the
`__globals__` of a function, an attribute that native code keeps to itself, or another thread.

A capture is replayed only if every value that it depends on is unchanged. A guard finds each of these values by its
path from the arguments, globals and attributes. Without a path there is no guard, and without the guard no replay: the
region runs as plain Python.""",
        hints=(
            "Access the object through an argument, an attribute or a global variable.",
            "Read it outside the region and pass it in.",
        ),
        example="""\
def forward(self, x):
    settings = vars(Settings)  # MP111
    return self.layer(x) * settings["scale"]
""",
        fixed="""\
def forward(self, x):
    return self.layer(x) * Settings.scale
""",
    ),
    Code(
        "MP112",
        "nested-compiler",
        "Another compiler runs inside the region",
        Severity.WARNING,
        reason="Code compiled by another tool runs inside this region, and MagPy can't monitor it.",
        explanation="""\
The region calls a `torch.jit` script or trace. Its Python is not executed, so it can't be monitored, and no other compiler
can trace into it.

The region runs as plain Python and still calls the compiled script. Functions and modules of `torch.compile` are not
affected: inside a region their Python runs as written and becomes part of the region's graph.

The region gains nothing from compilation.""",
        hints=(
            "Call the original Python module or function instead of the script or trace: one compiler is enough.",
            "Or call the scripted part by itself, outside the other regions.",
        ),
        example="""\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = torch.jit.script(Block())

    def forward(self, x):
        return self.block(x).mean()  # MP112
""",
        fixed="""\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x).mean()
""",
    ),
    Code(
        "MP113",
        "host-io",
        "Input or output in the middle of a region",
        Severity.WARNING,
        reason="Files, sockets and devices must be read or written at exactly this point on every call.",
        explanation="""\
The region opens, reads or writes a file, a socket, a pipe or a device, starts a process, or waits for input.
The text of `print` and `logging` can be written after the graph has run. This operation can't be delayed: it can fail,
block or return data, so it must happen at exactly this point on every call.

The region is not compiled: it runs as plain Python, and performs the input or output on every call.""",
        hints=(
            "Move the input or output out of the region: load before the call, save after it.",
            "Write checkpoints and samples in the training loop, not in `forward`.",
        ),
        example="""\
def forward(self, x):
    h = self.encoder(x)
    with open("activations.bin", "ab") as out:  # MP113
        torch.save(h, out)
    return self.head(h)
""",
        fixed="""\
def forward(self, x):
    h = self.encoder(x)
    return self.head(h), h


def evaluate(model, x):
    y, h = model(x)
    torch.save(h, "activations.pt")
    return y
""",
    ),
    Code(
        "MP114",
        "unreplayable-output",
        "Output that replay can't reproduce",
        Severity.WARNING,
        reason="Replay can't write this text again exactly as the program does.",
        explanation="""\
The region prints, logs or warns, but MagPy can't reproduce this output on a replay. Replay can repeat the output of
plain values: numbers, strings, and containers of them. It can't repeat the `print` of an object whose text may
change, a log record with a traceback, `extra` or `stack_info`, a log call in a region that also changes the logger's
settings, a warning that the region itself catches, or a change to the warning filters.

Without the output the program would behave differently, so the region runs as plain Python.

The region gains nothing from compilation.""",
        hints=(
            "Print or log plain values: numbers, strings, and containers of them.",
            "Move the output out of the region.",
            "Configure loggers and warning filters before the region is called.",
        ),
        example="""\
def forward(self, x):
    y = self.layer(x)
    print("config:", self.config)  # MP114: an object of a class with its own __repr__
    return y
""",
        fixed="""\
def forward(self, x):
    y = self.layer(x)
    print("config:", self.config.name)  # a string
    return y
""",
    ),
)
