"""Which region an object gets: that of the object before it at the same place of the program."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from magpy_core.runner.instances import Instances

SOURCE = "def caller(take):\n    take(get_frame())\n"


class Net:
    pass


def frame_of(file: str) -> FrameType:
    """Of a function whose code is equal in all files."""
    frames: list[FrameType] = []
    namespace: dict[str, Any] = {"get_frame": lambda: sys._getframe(1)}
    exec(compile(SOURCE, file, "exec"), namespace)
    namespace["caller"](frames.append)
    return frames[0]


def test_the_next_object_of_the_place_gets_the_region() -> None:
    instances, frame = Instances(), frame_of("model.py")
    instances.add(Net(), frame, "first", shared=False)  # it dies at once
    assert instances.adopt(Net(), frame_of("model.py")) == "first"


def test_equal_code_of_another_file_is_another_place() -> None:
    instances, first, second = Instances(), frame_of("model_a.py"), frame_of("model_b.py")
    assert first.f_code == second.f_code
    instances.add(Net(), first, "of model_a", shared=False)
    assert instances.adopt(Net(), second) is None
