"""Numbers of classes that a region counts up."""

# ruff: noqa
import torch


def args(i):
    return (torch.ones(2) * (i + 0.25),)


# === number_of_class: calls=10
class Trainer:
    count = 0
    scale = 1.0
    name = "a"


def region(x):
    Trainer.count += 1
    if Trainer.count % 4 == 0:
        Trainer.scale *= 2.0
    return x * Trainer.count * Trainer.scale


def change_count():
    Trainer.count = 40


def change_to_float():
    Trainer.count = 0.5


def change_to_bool():
    Trainer.count = True


def change_to_text():
    Trainer.scale = "a"


def change_deleted():
    del Trainer.count


def change_added():
    Trainer.other = 1


def change_replaced():
    global Trainer

    class Trainer:
        count = 7
        scale = 3.0


def change_to_property():
    Trainer.scale = property(lambda self: 2.0)


def change_base():
    class Base:
        count = 100

    global Trainer

    class Trainer(Base):
        scale = 1.0


# === number_of_class_by_instances: calls=10
class Counter:
    total = 0
    step = 2

    def __init__(self):
        self.own = 0

    def tick(self):
        type(self).total += self.step
        self.own += 1
        return self.total


class Other(Counter):
    pass


one, two = Counter(), Other()


def region(x):
    return x * one.tick() + two.tick(), Counter.total, Other.total


def change_step():
    Counter.step = 3


def change_of_instance():
    one.total = 5


def change_of_subclass():
    Other.total = 50


def change_class():
    one.__class__ = Other


# === number_of_class_with_metaclass: calls=6
class Meta(type):
    log = []

    def __setattr__(cls, name, value):
        Meta.log.append(name)
        super().__setattr__(name, value)


class Trainer(metaclass=Meta):
    count = 0


def region(x):
    Trainer.count += 1
    return x * Trainer.count, len(Meta.log)


# === number_of_class_read_first: calls=8
class Trainer:
    count = 0


def seen():
    return Trainer.count


def region(x):
    before = seen()
    Trainer.count = before + 1
    return x, before, seen()


def change_count():
    Trainer.count = 10


# === number_of_class_set_blindly: calls=8
class Trainer:
    last = 0.0
    flag = 0


def region(x):
    Trainer.last = x.sum().item()
    setattr(Trainer, "flag", 3)
    return x


def change_last():
    class Loud:
        def __del__(self):
            lines.append("gone")

    Trainer.last = Loud()


def change_flag():
    Trainer.flag = 9


lines = []


# === number_of_class_and_a_class_method: calls=8
class Trainer:
    count = 0

    @classmethod
    def step(cls, x):
        cls.count += 1
        if cls.count > 100:
            return x
        return x * cls.count


class Own(Trainer):
    pass


def region(x):
    return Trainer.step(x), Own.step(x)


def change_count():
    Trainer.count = 200


def change_own():
    Own.count = 5


# === number_of_class_deleted: calls=6
class Trainer:
    count = 0


def region(x):
    Trainer.count += 1
    if Trainer.count == 3:
        del Trainer.count
        Trainer.count = 0
    return x * Trainer.count


# === number_of_class_exact: calls=8
class Trainer:
    index = 0


values = [x * 1.0 for x in range(50)]


def region(x):
    Trainer.index += 1
    return x * values[Trainer.index]


def change_index():
    Trainer.index = 20


# === number_of_module_class: calls=8
class Net(torch.nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)

    def forward(self, x):
        Net.calls += 1
        return self.lin(x) * self.calls


region = Net()


def change_calls():
    Net.calls = 30


def change_of_instance():
    region.calls = 3


# === number_of_class_in_a_function_with_a_backward: calls=5
class Scale(torch.autograd.Function):
    uses = 0

    @staticmethod
    def forward(ctx, x):
        Scale.uses += 1
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def region(x):
    return Scale.apply(x.requires_grad_(False)), Scale.uses


# === number_of_class_in_a_checkpoint: calls=5
import contextvars
import itertools

from torch.utils.checkpoint import checkpoint

steps = itertools.count()
current = contextvars.ContextVar("current", default=0)


class Block:
    runs = 0


def block(x):
    Block.runs += 1
    current.set(current.get() + 1)
    return x * 2 + next(steps)


weight = torch.ones(2, requires_grad=True)


def region(x):
    y = checkpoint(block, x * weight, use_reentrant=False)
    return y.sum(), Block.runs, current.get()


# === number_of_class_from_threads: calls=6
import threading


class Trainer:
    count = 0


def args(i):
    def count():
        Trainer.count += 1

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    return (torch.ones(2) * (i + 0.25),)


def region(x):
    Trainer.count += 1
    return x * Trainer.count
