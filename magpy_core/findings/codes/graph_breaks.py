"""MP1xx: why a region is not one complete operator graph. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP101",
        "data-dependent-branch",
        "Control flow depends on a tensor's value",
        Severity.WARNING,
        reason="Which way Python goes here is known only after the tensor has been computed.",
        explanation="""\
An `if`, `while`, `assert`, `and`, `or`, `not` or conditional expression asked a tensor whether it is true. The
answer is data, not structure: it can be different on the next call although everything MagPy can check before
the call (types, shapes, attributes, globals) is the same.

An operator graph has no Python branches in it, so the graph ends at the question. What was recorded belongs to
the side the program took this time; the other side is captured when a call first takes it. `torch.compile` stops
at the same place, and drops the whole frame if the branch is inside a loop.

Each time, the processor waits until the tensor is computed (on a GPU that empties the launch queue), the
compiler cannot fuse operators across the branch, and every new outcome costs another capture.""",
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
        reason="Python needs the number itself, so everything before it must have been computed.",
        explanation="""\
The program turned a tensor into a Python value: `.item()`, `.tolist()`, `.numpy()`, `int(t)`, `float(t)`,
`f"{t}"`, `x in t` and the like. From then on, Python holds a number that no check made before the call could
have foreseen.

The operator graph recorded so far must run to its end before Python can go on, so the graph is cut at the read.
If the value only leaves the region (it is logged, or returned), nothing after the cut depends on it; if it
decides what happens next, each new value may need another capture.

A read costs one synchronisation with the device per call and splits the graph in two: no operator is fused
across the cut, and activations that could have stayed in registers are written to memory.""",
        hints=(
            "Keep the value as a tensor (`loss.detach()`) and read it outside the region, or only every n-th step.",
            "Replace arithmetic on `.item()` by the same arithmetic on the 0-d tensor.",
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
        reason="The result of this call comes from outside the program, so it has to be made again on every call.",
        explanation="""\
The region called something whose result is not a function of values MagPy can check: a clock
(`time.perf_counter`), Python's or NumPy's random numbers, `uuid`, `id()` or `hash()` of an object,
the current thread.

A replay skips the Python of the region. Skipping this call would freeze the first answer for ever, which would
be wrong, so this region is not compiled: it runs as plain Python, and the call is really made each time.

It costs the whole gain of compiling the region.""",
        hints=(
            "Move the call out of the region and pass its result in as an argument.",
            "Draw random numbers with torch, or one by one with `random` and `numpy.random`: a replay draws them again.",
            "If the function really returns the same for the same arguments, declare it: "
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
        reason="Nothing is known about what this native function reads, writes or returns.",
        explanation="""\
The region called a function that is implemented in C, C++ or Rust and is in none of MagPy's tables: usually an
extension module of your own or of a library. Python functions are followed instruction by instruction; native
code is opaque. It could read a file, change its arguments or keep a reference to them. The same goes for objects whose
class is written in C and that were there before (a hash object, a compressor, a parser, an array of NumPy's): what they
hold is in no attribute, so no guard can watch it.

MagPy never guesses: this region is not compiled, it runs as plain Python.

It costs the whole gain of compiling the region.""",
        hints=(
            "If the function is pure (same result for the same arguments, no effects), say so: "
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
        "A tensor operation ran outside every recorded call",
        Severity.WARNING,
        reason="A tensor operator ran that the operator graph does not contain, so replaying the graph would be wrong.",
        explanation="""\
MagPy records tensor operations twice: as the calls your Python makes, and below them as the operators that
PyTorch really executes. Here the second recorder saw an operator that belongs to no recorded call, or a tensor
entered the graph that comes from nowhere MagPy knows (for example built by `torch.from_numpy` from memory that
somebody else changes, or made inside native code).

A graph without that operator would silently return something else, so the capture is given up at this line and
the region runs as plain Python.

The cost is all that compiling the region would have won.""",
        hints=(
            "Make the tensor outside the region and pass it in, or keep it as a module buffer.",
            "Replace NumPy work in the middle of the region by the torch function of the same name.",
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
        reason="MagPy cannot yet put this torch feature into an operator graph and be certain that replay is the same.",
        explanation="""\
The region used a part of torch that MagPy knows and cannot record with certainty that replay is
indistinguishable: a scripted module, sparse or quantised storage tricks, resizing or re-pointing a tensor's
storage (`set_`, `resize_`, assignment to `.data`), another thread's autograd, a tensor subclass with a dispatch
of its own, an explicit `torch.Generator`.

The message names the feature. The capture is given up at this line and the region runs as plain Python; results
are right, only the speed is missing.""",
        hints=(
            "The message names the feature; often an ordinary operator does the same "
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
        "A custom autograd.Function that depends on outside state",
        Severity.WARNING,
        reason="The backward of this autograd.Function cannot be put into the graph as it is.",
        explanation="""\
A custom `torch.autograd.Function` runs its `forward` now and its `backward` later, when the loss is
differentiated. MagPy can record it as one differentiable operator only if both depend on nothing but their
arguments and what was saved on `ctx`. This one reads or changes other state (a global that is not a module, a closure
variable, an outside object), or is called from inside a library, where its call can't be recorded as one.

A compiler traces `backward` once; the gradient could then silently be that of an earlier call, so the region runs as
plain Python.

The cost is all that compiling the region would have won.""",
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
        "A generator or native iterator from outside is advanced",
        Severity.WARNING,
        reason="The iterator's next value depends on hidden state that cannot be checked or restored.",
        explanation="""\
The region took the next value of an iterator that was made outside of it: a generator, a DataLoader's
iterator, a file, `itertools.cycle`. Its state is inside the object and cannot be looked at without moving it, so
MagPy can neither check it before a call nor put it back when a call has to start again. (`next()` of an iterator
over a list, a tuple, a range or text, and of `itertools.count`, is part of a capture, until the iterator ends.)

This region is not compiled: it runs as plain Python, which costs the whole gain of compiling it.""",
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
        reason="How large the result is depends on the data, and Python used that size.",
        explanation="""\
Some operators return as many elements as the data asks for: `nonzero`, `x[mask]`, `unique`,
`repeat_interleave`, `torch.where(condition)`. The operator itself can be in a graph. But here Python used the
resulting size (`len`, `.shape`, a loop over the rows, a tensor made with that size), and that is a value only
known after the data.

MagPy does not compile such a region yet: it runs as plain Python, which costs the whole gain of compiling it.""",
        hints=(
            "Keep the full size and a mask: `torch.where(mask, x, 0)` and a masked sum instead of `x[mask]`.",
            "Pad to a fixed upper bound (`torch.topk` with a constant k, or pad and slice later).",
            "Use the size as a tensor (`mask.sum()`) where only arithmetic is done with it.",
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
        "An object that leaves the region can't be rebuilt by replay",
        Severity.WARNING,
        reason="Replay would have to make this object, and its type gives no safe way to do that.",
        explanation="""\
The region made an object that its caller gets to see (it is returned, or stored in an outside object), and a
replay, which skips the Python that made it, has to make an equal one. MagPy can do that for tensors, numbers,
strings, the built-in containers, dataclasses, named tuples, enums and plain Python classes. This object is
something else: an open file, a lock, a running generator, a native object, a class with a metaclass of its own, an
exception that was raised and caught (it holds the frames it went through).

Without the object the result would be wrong, so the region runs as plain Python.

The cost is all that compiling the region would have won.""",
        hints=(
            "Return plain data (tensors, tuples, dicts, dataclasses) and make the special object in the caller.",
            "Make the object once, outside the region, and use it inside.",
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
        "State was reached in a way the monitor can't follow",
        Severity.WARNING,
        reason="The value was reached by a way that cannot be checked again before the next call.",
        explanation="""\
The region used an object that was there before, but came to it by a way that leaves no access path: through the
`vars()` of a class, the `__globals__` of a function, an attribute that native code keeps for itself, another thread.

A capture is used again only if every value it depends on is still the same, and each one is found by its path
from the arguments, globals and attributes. For this one there is no path, so there can be no guard, and without
the guard the region is not replayed: it runs as plain Python.""",
        hints=(
            "Reach the object by an argument, an attribute or a global variable.",
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
        reason="Code compiled by another tool runs inside this region, and its inside cannot be seen.",
        explanation="""\
The region called what another compiler made and owns: a `torch.jit` script or trace. Its Python is not executed, so
it can't be monitored, and no other compiler can look into it.

The region runs as plain Python, with what the other compiler made in it as it is. A function or module of
`torch.compile` needs nothing: inside a region its Python runs as written and becomes part of the region's graph.

The cost is all that compiling the region would have won.""",
        hints=(
            "Call the Python module or function that the script or trace was made from: one compiler is enough.",
            "Or call the scripted part on its own, outside the other regions.",
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
        reason="Files, sockets and devices have to be read or written at this very moment, every time.",
        explanation="""\
The region opened, read or wrote a file, a socket, a pipe or a device, started a process, or waited for input.
Unlike `print` and `logging`, whose text can be put out after the graph has run, this can fail, block or return
data, so it must happen exactly here on every call.

This region is not compiled: it runs as plain Python, and the input or output is really done on every call. It is
as slow as the device it waits for.""",
        hints=(
            "Move the input or output out of the region: load before it, save after it.",
            "Write checkpoints and samples in the training loop and not in `forward`.",
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
)
