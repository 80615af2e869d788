"""MP3xx: side effects of a region, which a replay repeats. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP301",
        "attribute-write",
        "An attribute of an external object is written",
        Severity.INFORMATION,
        reason="Replay repeats the write on every call, in program order.",
        explanation="""\
The region sets or deletes an attribute of an external object, one that existed before the call: usually
`self.x = ...` in `forward`. A replay skips the Python, so it writes the same attribute after the graph has run, in the
order of your program.

This does not break the graph and costs a fraction of a microsecond per write. If the value written varies from
call to call and is not computed from tensors or counters, each new value needs a capture.

A tensor stored this way stays alive until the next call, together with its whole autograd graph.""",
        hints=(
            "No action needed if the write is intended.",
            "Store `tensor.detach()` if only the value is needed, so that the autograd graph can be freed.",
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
        "An external container is changed",
        Severity.INFORMATION,
        reason="Replay makes the same change to the same container object.",
        explanation="""\
The region changes a list, dict, set, deque or other container that existed before the call: by an item
assignment, `append`, `update`, `pop`, `+=`. MagPy compares the container before and after the call, so it sees a change
made by any method. Replay makes the same change in place, so every other reference to the container sees it.

Appending needs no guard on the current contents. Other changes may need one, and then a container that is different on
each call needs a capture for each of its contents.""",
        hints=(
            "No action needed for `append` and `extend`.",
            "A list of tensors that grows forever keeps every autograd graph alive: append `t.detach()`.",
            "Prefer appending to inserting or popping at the front, which depend on all of the contents.",
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
        reason="Replay sets the same global variable in the same module.",
        explanation="""\
The region assigns or deletes a module-level variable (a `global` statement, or `module.name = ...`). Replay repeats
the write after the graph has run.

This does not break the graph. A global that is both read and written (a counter) becomes a symbolic scalar once it
varies (MP202), which costs one more capture.""",
        hints=(
            "No action needed if the write is intended.",
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
        reason="Replay sets the same closure cell.",
        explanation="""\
The region assigns a variable of an enclosing function (a `nonlocal` statement). Replay writes the same cell
after the graph has run, so every function that shares the variable sees the new value.

This does not break the graph. A closure variable that is both read and written becomes a symbolic scalar once it
varies (MP202), which costs one more capture.""",
        hints=(
            "No action needed if the write is intended.",
            "If several regions share the variable, return the new value and let the caller store it.",
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
        has_fix=True,
        reason="Replay prints, logs or warns the same text in the same order.",
        explanation="""\
The region prints, logs or warns. On each replay the text goes to the same stream, logger or warnings filter,
after the graph has run and in the order of your program.

If the text contains the value of a tensor, that value must be read first: this is a host read (MP102). If it
contains a varying Python number, the number becomes a symbolic scalar.

Each call spends as much time on output as plain Python does.""",
        hints=(
            "Print outside the region, or only every n-th step.",
            "With `logging`, pass the values as arguments (`log.debug('%s', x)`): a disabled logger formats nothing.",
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
        "An external tensor is changed in place",
        Severity.INFORMATION,
        reason="The operator graph makes the same change to the same tensor.",
        explanation="""\
The region changes the data of a tensor that existed before the call: an argument, a parameter, a buffer
(`x.add_()`, `x[i] = ...`, `out=`, the running statistics of BatchNorm, an optimizer's step). The in-place
operation is part of the graph and writes to the same storage, so views of the tensor see the change as well.

This does not break the graph. The backend may have to copy the tensor if it is also read afterwards or if another
input shares its memory.""",
        hints=(
            "No action needed for buffers and optimizer state.",
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
        "The region raises an exception",
        Severity.INFORMATION,
        reason="A call that raises is not replayed; the caller gets the exception unchanged.",
        explanation="""\
The region raises an exception and does not catch it. The caller gets the same exception, with the same
type, message and traceback, and all side effects of the region before it.

If it depends only on guarded values, the same call raises the same exception again. A region that uses an exception
for ordinary control flow on every call is never replayed as a whole.""",
        hints=(
            "If this happens often, return a value that describes the case; keep exceptions for errors.",
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
        "`.data` bypasses autograd",
        Severity.HINT,
        has_fix=True,
        reason="`.data` is a tensor without autograd history: autograd does not notice a write to it.",
        explanation="""\
The region reads `.data` of a tensor that requires a gradient. The result has no autograd history, which is what most
programs intend, but it also doesn't share the tensor's version counter. If it is written to after the tensor has been
saved for the backward pass, the gradient is silently computed from the new values.

`.detach()` has the same values and shares the same memory, but such a write raises an error in the backward pass. The
operator graph is complete, and the same for both.""",
        hints=(
            "Use `x.detach()` if the values are only read: the quick fix in the editor does that.",
            "Change a parameter under `torch.no_grad()` and without `.data`: `with torch.no_grad(): p.add_(step)`.",
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
