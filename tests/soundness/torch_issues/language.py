"""Python: what the program says is read in another way while it is traced."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from tests.soundness.torch_issues.case import Made, case


@case(196467, "A tensor made with another one's size holds that size as its elements.", ours="right")
def tensor_of_a_size() -> Made:
    return lambda x: torch.Tensor((x * 1).size()).shape, lambda: (torch.randn(1, 4),)


@case(175855, "Elements appended to a list while it is gone through are left out.", compiled="right", ours="right")
def growing_list() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        values = [x.sum()]

        def grow() -> Any:
            for item in values:
                if len(values) < 3:
                    values.append(item + 1)
                yield item

        return torch.stack(list(grow())).sum()

    return step, lambda: (torch.ones(1),)


@case(198190, "A returned generator is one without its return value.", compiled="right", ours="eager")
def returned_generator() -> Made:
    def make(x: torch.Tensor) -> Any:
        yield x * 1
        yield x * 2
        return "done"

    return make, lambda: (torch.ones(2),)


@case(
    197896, "What a method of a class in the function appends to a list around it is lost.", compiled="right", ours="eager"
)
def method_of_local_class() -> Made:
    log: list[int] = []

    def step(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        class Helper:
            def touch(self) -> None:
                log.append(1)

        Helper().touch()
        return x + 1, len(log)

    return step, lambda: (torch.ones(2),)


@case(176693, "A generator expression with a condition gives other numbers.", compiled="right", ours="right")
def filtered_generator() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        numbers = (v * 2 for v in range(6) if v % 2 == 1)
        return x + next(numbers) + next(numbers) + next(numbers)

    return step, lambda: (torch.zeros(1),)


@case(169253, "What is appended to a list of a class is lost.", compiled="right", ours="right")
def list_of_a_class() -> Made:
    class Model(nn.Module):
        items: ClassVar[list[torch.Tensor]] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            Model.items.append(x)
            return x + len(Model.items)

    net = Model()

    def step(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return net(x), len(Model.items)

    return step, lambda: (torch.ones(2),)


@case(
    196173,
    "Whether two names mean one object is decided once, and what is written to the object is lost.",
    compiled="right",
    ours="right",
)
def identity_of_state() -> Made:
    class State:
        def __init__(self) -> None:
            self.count = 0

    first, second = State(), State()
    current = [first]

    def step(x: torch.Tensor) -> tuple[torch.Tensor, int, int]:
        state = current[0]
        state.count += 1
        current[0] = second if state is first else first
        return x * (2 if state is first else 3), first.count, second.count

    return step, lambda: (torch.ones(2),)


@case(191821, "A global that is replaced in a loop keeps its first value in a region that is compiled once.", ours="right")
def replaced_global() -> Made:
    class Input:
        def __init__(self, hidden: torch.Tensor) -> None:
            self.hidden = hidden

    given = [Input(torch.tensor(0))]

    @torch.compiler.nested_compile_region
    def region() -> torch.Tensor:
        return given[0].hidden + 1

    def step(hidden: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            given[0] = Input(hidden)
            hidden = region()
        return hidden

    return step, lambda: (torch.tensor(0),)


@case(
    194976,
    "A limit that becomes a variable of the graph keeps the value of an earlier call.",
    compiled="right",
    ours="right",
    calls=6,
)
def limit_of_earlier_call() -> Made:
    limits = iter([7.0, 5.0, 1.0, 0.5, 3.0, 0.25] * 4)

    def step(x: torch.Tensor, limit: float) -> torch.Tensor:
        gate, up = torch.chunk(x, 2, dim=-1)
        return F.silu(gate).clamp(max=limit) * up.clamp(min=-limit, max=limit)

    return step, lambda: (torch.randn(4, 16) * 8, next(limits))


@case(115774, "A tensor of a module that is replaced by a new one is not noticed.", compiled="right", ours="right")
def replaced_buffer() -> Made:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache = torch.tensor([0, 0])

        def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            self.cache[at] = x
            return self.cache.clone()

    net, places = Model(), iter([0, 1] * 20)

    def arguments() -> tuple[torch.Tensor, ...]:
        net.cache = torch.tensor([0, 0])
        return torch.tensor([2]), torch.tensor([next(places)])

    return lambda x, at: net(x, at), arguments
