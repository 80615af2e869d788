"""In how many steps a finding was true: replays and plain-Python steps count, calls within one step count once."""

from __future__ import annotations

import gc
import weakref

import torch

from magpy_core.findings import Finding
from magpy_core.regions.session import Session


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(1)
        return x + 1 if x.sum() > 0 else x - 1


def _session(told: list[Finding], target: object) -> tuple[Session, object]:
    session = Session(mode="observe", backend="eager", on_finding=lambda f: told.append(f))
    region = session.region(1, kind="function", name="r", file=__file__, line=1, target=target)  # type: ignore[arg-type]
    return session, region


def test_replays_count_once_a_step() -> None:
    told: list[Finding] = []
    net = Net()
    session, region = _session(told, net.forward)
    for step in range(1, 8):
        for _ in range(0 if step == 4 else 2):  # a step that does not call the region does not have its findings
            region(torch.ones(3))  # type: ignore[operator]
        session.stepped(step)
    steps = {f.code: f.steps for f in session.findings}
    assert steps["MP101"] == 6 and steps["MP302"] == 6
    assert [f.steps for f in told if f.code == "MP101"][-1] == 6, "told again as it goes on"
    assert steps.get("MP204", 0) == 0, "guards are facts of a capture, not of a step"


def test_plain_python_steps_count_for_what_makes_them_plain() -> None:
    import time

    def clock(x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * time.time()

    told: list[Finding] = []
    session, region = _session(told, clock)
    for step in range(1, 6):
        region(torch.ones(3))  # type: ignore[operator]
        session.stepped(step)
    (finding,) = (f for f in session.findings if f.code.startswith("MP1"))
    assert finding.steps == 5


def test_nothing_is_kept_alive_or_piles_up() -> None:
    told: list[Finding] = []
    net = Net()
    _, region = _session(told, net.forward)
    region(torch.ones(3))  # type: ignore[operator]
    capture = weakref.ref(region.captures[0])  # type: ignore[attr-defined]
    region.captures = []  # type: ignore[attr-defined]
    gc.collect()
    assert capture() is None
    finding = next(f for f in told if f.code == "MP101")
    for _ in range(100):  # a program without steps, whose region says the same again at every call
        region.log.add(finding)  # type: ignore[attr-defined]
    assert len(region.log.counts._fresh) <= len(told)  # type: ignore[attr-defined]
    assert len(region.log.counts._fresh) == len({f.key for f in told if f.code[:3] in ("MP1", "MP3")})  # type: ignore[attr-defined]
