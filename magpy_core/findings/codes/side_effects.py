"""MP3xx: what a region changes outside of itself, which replay does as well. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP301",
        "attribute-write",
        "An attribute of an outside object is written",
        Severity.INFORMATION,
        reason="The write is kept: replay makes it again on every call, in program order.",
        explanation="""\
The region set or deleted an attribute of an object that was there before it was called: usually `self.x = ...`
in `forward`. A replay skips the Python, so MagPy recorded the difference and writes the same attribute after the
graph has run, in the same order as your program did.

It does not break the graph. It costs a fraction of a microsecond per write. If the value written varies from
call to call in a way that is not computed from tensors or counters, each new value needs a capture.

A tensor kept this way stays alive until the next call, and with it its whole autograd graph.""",
        hints=(
            "Nothing needs to be done if the write is wanted.",
            "Keep `tensor.detach()` if only the value is needed, so that the autograd graph can be freed.",
            "Return the value instead of storing it if the caller is the only reader.",
        ),
        example="""\
def forward(self, x):
    weights = torch.softmax(self.score(x), dim=-1)
    self.last_attention = weights  # MP301
    return weights @ self.value(x)
""",
        fixed="""\
def forward(self, x):
    weights = torch.softmax(self.score(x), dim=-1)
    return weights @ self.value(x), weights
""",
    ),
    Code(
        "MP302",
        "container-mutation",
        "An outside container is changed",
        Severity.INFORMATION,
        reason="The change is kept: replay makes the same change in the same container object.",
        explanation="""\
The region changed a list, dict, set, deque or other container that was there before it was called: by an item
assignment, `append`, `update`, `pop`, `+=`. MagPy compares the container before and after, whichever method did
it, and replay makes the same change in place, so every other reference to the container sees it.

Appending needs no check of what is already in the container. Other changes may: then the old content is guarded,
and a container that is different on each call needs a capture per content.""",
        hints=(
            "Nothing needs to be done for `append` and `extend`.",
            "A list of tensors that grows for ever keeps every autograd graph alive: append `t.detach()`.",
            "Prefer appending over inserting or popping at the front, whose effect depends on the whole content.",
        ),
        example="""\
history = []


def forward(self, x):
    loss = self.net(x).square().mean()
    history.append(loss.detach())  # MP302
    return loss
""",
    ),
    Code(
        "MP303",
        "global-write",
        "A global variable is written",
        Severity.INFORMATION,
        reason="The write is kept: replay sets the same global variable in the same module.",
        explanation="""\
The region assigned or deleted a module-level variable (a `global` statement, or `module.name = ...`). Replay does
the same write after the graph has run.

It does not break the graph. A global that is both read and written (a counter) is carried as a symbolic scalar
once it has been seen to vary (MP202), at the price of one more capture.""",
        hints=(
            "Nothing needs to be done if the write is wanted.",
            "Keep the state in the module or in an object that is passed in: it is easier to reset and to checkpoint.",
        ),
        example="""\
STEPS = 0


def train_step(model, x):
    global STEPS
    STEPS += 1  # MP303
    return model(x).mean()
""",
    ),
    Code(
        "MP304",
        "closure-write",
        "A closure variable is written",
        Severity.INFORMATION,
        reason="The write is kept: replay sets the same closure cell.",
        explanation="""\
The region assigned a variable of an enclosing function (a `nonlocal` statement). Replay writes the same cell
after the graph has run, so every function that shares the variable sees the new value.

It does not break the graph. A closure variable that is both read and written is carried as a symbolic scalar once
it has been seen to vary (MP202), at the price of one more capture.""",
        hints=(
            "Nothing needs to be done if the write is wanted.",
            "Return the new value and let the caller keep it if several regions share the variable.",
        ),
        example="""\
def make_step(model):
    seen = 0

    def step(x):
        nonlocal seen
        seen += x.shape[0]  # MP304
        return model(x).mean()

    return step
""",
    ),
    Code(
        "MP305",
        "output",
        "Text is printed, logged or warned",
        Severity.INFORMATION,
        reason="The output is kept: replay prints, logs or warns the same text in the same order.",
        explanation="""\
The region printed, logged or warned. The text goes to the same stream, logger or warnings filter on each replay,
after the graph has run and in the order your program wrote it.

If the text contains the value of a tensor, that value must be read first: this is a host read (MP102). If it
contains a Python number that varies, the number is carried as a symbolic scalar.

Output costs what it costs in plain Python, on every call.""",
        hints=(
            "Print outside the region, or only every n-th step.",
            "With `logging`, pass the values as arguments (`log.debug('%s', x)`): nothing is formatted when it is off.",
        ),
        example="""\
def forward(self, x):
    if x.shape[0] != self.batch_size:
        print("odd batch:", x.shape[0])  # MP305
    return self.layer(x)
""",
    ),
    Code(
        "MP306",
        "tensor-mutation",
        "A tensor from outside is changed in place",
        Severity.INFORMATION,
        reason="The change is kept: the operator graph writes into the same tensor.",
        explanation="""\
The region changed the data of a tensor that was there before it was called: an argument, a parameter, a buffer
(`x.add_()`, `x[i] = ...`, `out=`, the running statistics of BatchNorm, an optimizer's step). The in-place
operation is in the graph and writes into the same storage, so views of it see the change as well.

It does not break the graph. The backend may have to copy if the tensor is also read afterwards or if another
input shares its memory.""",
        hints=(
            "Nothing needs to be done for buffers and optimizer state.",
            "Changing an argument in place surprises callers: return a new tensor unless memory is scarce.",
        ),
        example="""\
def forward(self, x):
    self.running_mean.lerp_(x.mean(0), 0.1)  # MP306
    return x - self.running_mean
""",
    ),
    Code(
        "MP307",
        "raised-exception",
        "The region leaves by an exception",
        Severity.INFORMATION,
        reason="A call that ends in an exception is not replayed; the exception reaches the caller unchanged.",
        explanation="""\
The region raised an exception that it did not catch itself. The caller gets the same exception, with the same
type, message and traceback, and everything the region changed before it is changed.

If only values that are guarded led to it, the same call raises the same exception again. An exception used as
ordinary control flow on every call keeps the region from being replayed as a whole.""",
        hints=(
            "Return a value that says what happened if it happens often; keep exceptions for errors.",
            "Check the arguments before the region is called.",
        ),
        example="""\
def forward(self, x):
    if x.shape[1] > self.max_length:
        raise ValueError(f"sequence too long: {x.shape[1]}")  # MP307
    return self.layer(x)
""",
    ),
    Code(
        "MP308",
        "past-autograd",
        "A tensor is used past autograd",
        Severity.HINT,
        reason="`.data` gives a tensor's memory without its history: a write to it is one that autograd does not notice.",
        explanation="""\
The region reads `.data` of a tensor that requires a gradient. The result has no history, which is what most programs
want, but it also has no version counter in common with the tensor: if it is written to after the tensor has been
saved for the backward pass, the gradient is computed from the new values, and nothing says so.

`.detach()` gives the same values and the same memory, and such a write raises an error in the backward pass. The
operator graph is the same for both, and complete.""",
        hints=(
            "Write `x.detach()` where the values are only read: the fix in the editor does that.",
            "Write a parameter under `torch.no_grad()` and without `.data`: `with torch.no_grad(): p.add_(step)`.",
        ),
        example="""\
def forward(self, x):
    y = self.layer(x)
    return y / y.data.norm()  # MP308
""",
        fixed="""\
def forward(self, x):
    y = self.layer(x)
    return y / y.detach().norm()
""",
    ),
)
