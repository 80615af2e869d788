"""A build of torch for CUDA with a device, as far as Python sees it: functions of ``torch._C`` that the CPU's build lacks.

They are C functions, as torch's are, because the monitor enters those of Python. No kernel can run; what a program asks of
its device between kernels can be tested. Key names: CudaBuild, cuda_build.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import operator
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch._dynamo.device_interface  # imports functions of torch._C by name if the build has any for CUDA
import torch._inductor.utils
import torch.utils.checkpoint

_NO_ARGUMENTS, _ONE_ARGUMENT = 0x4, 0x8
_CALL = ctypes.PYFUNCTYPE(ctypes.py_object)  # its arguments stay in registers
_CALL_WITH_ARGUMENT = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", _CALL), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_kept: list[Any] = []  # a C function refers to its definition


def _builtin(name: str, box: list[Any], arguments: int = 0) -> Any:
    """A C function of ``torch._C`` that ignores its argument and returns what is in ``box``."""
    answer = _CALL(functools.partial(operator.getitem, box, 0))
    return _function(name, answer, _ONE_ARGUMENT if arguments else _NO_ARGUMENTS)


def _selection(name: str, box: list[Any]) -> Any:
    """A C function of ``torch._C`` that selects a device and returns the one before."""

    def select(_: None, index: int) -> int:
        if index < 0:
            return -1
        before: int = box[0]
        box[0] = index
        return before

    select.__code__ = select.__code__.replace(co_filename=torch.__file__)  # its frames are not monitored
    call = _CALL_WITH_ARGUMENT(select)
    _kept.append(call)
    return _function(name, ctypes.cast(call, _CALL), _ONE_ARGUMENT)


def _function(name: str, call: Any, arguments: int) -> Any:
    definition = _Definition(name.encode(), call, arguments, None)
    _kept.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object]
    return make(ctypes.addressof(definition), None, "torch._C")


def _states_of_devices() -> Any:
    """``torch.utils.checkpoint.get_device_states``, for which tensors on the CPU are on the device."""
    module = torch.utils.checkpoint
    text = inspect.getsource(module.get_device_states)
    for found, instead in (('{"cpu", "meta"}', '{"meta"}'), ("arg.get_device()", "0")):
        assert text.count(found) == 1
        text = text.replace(found, instead)
    names: dict[str, Any] = {}
    exec(compile(text, module.__file__, "exec"), vars(module), names)
    return names["get_device_states"]


class CudaBuild:
    """What the functions answer. ``capturing``: a CUDA graph is being recorded; ``stream``: the current one; ``index``: the
    current device, which the program can change. ``generator``: the random stream of device 0."""

    def __init__(self) -> None:
        self._boxes = {"capturing": [False], "stream": [torch.Stream(device="cpu")], "index": [0]}
        self.generator = torch.Generator()

    @property
    def index(self) -> int:
        return int(self._boxes["index"][0])

    def now(self, **answers: Any) -> None:
        for name, answer in answers.items():
            self._boxes[name][0] = answer

    def functions(self) -> dict[str, Any]:
        boxes = self._boxes
        fields = {"major": 9, "minor": 0, "name": "H100", "multi_processor_count": 132, "total_memory": 80 << 30}
        members = {name: property(_builtin(name, [value], 1)) for name, value in fields.items()}
        properties = type("_CudaDeviceProperties", (), {"__module__": "torch._C", "__slots__": (), **members})()
        return {
            "_accelerator_getAccelerator": _builtin("_accelerator_getAccelerator", [torch.device("cuda")]),
            "_accelerator_getDeviceIndex": _builtin("_accelerator_getDeviceIndex", boxes["index"]),
            "_accelerator_getStream": _builtin("_accelerator_getStream", boxes["stream"], 1),
            "_cuda_getDevice": _builtin("_cuda_getDevice", boxes["index"]),
            "_accelerator_exchangeDevice": _selection("_accelerator_exchangeDevice", boxes["index"]),
            "_accelerator_maybeExchangeDevice": _selection("_accelerator_maybeExchangeDevice", boxes["index"]),
            "_cuda_exchangeDevice": _selection("_cuda_exchangeDevice", boxes["index"]),
            "_cuda_maybeExchangeDevice": _selection("_cuda_maybeExchangeDevice", boxes["index"]),
            "_cuda_setDevice": _selection("_cuda_setDevice", boxes["index"]),
            "_cuda_getDeviceCount": _builtin("_cuda_getDeviceCount", [1]),
            "_cuda_isCurrentStreamCapturing": _builtin("_cuda_isCurrentStreamCapturing", boxes["capturing"]),
            "_get_device_properties": _builtin("_get_device_properties", [properties], 1),
        }


@contextmanager
def cuda_build() -> Iterator[CudaBuild]:
    """A context in which torch is built for CUDA and has used its device, of which it knows nothing else."""
    build = CudaBuild()
    functions = build.functions()
    with ExitStack() as stack:
        patch = stack.enter_context
        for name, function in functions.items():
            patch(mock.patch.object(torch._C, name, function, create=True))
        patch(mock.patch.object(torch._C, "_has_cuda", True))
        patch(mock.patch.object(torch.version, "cuda", "13.0"))
        patch(mock.patch.object(torch.cuda, "_initialized", True))
        patch(mock.patch.object(torch.cuda, "_cached_device_count", 1))
        patch(mock.patch.object(torch.cuda, "_get_device_properties", functions["_get_device_properties"], create=True))
        name = "_cuda_isCurrentStreamCapturing"
        patch(mock.patch.object(torch.cuda.graphs, name, functions[name]))
        patch(mock.patch.object(torch.cuda, "_exchange_device", functions["_cuda_exchangeDevice"]))
        patch(mock.patch.object(torch.cuda, "_maybe_exchange_device", functions["_cuda_maybeExchangeDevice"]))
        patch(mock.patch.object(torch.cuda, "default_generators", (build.generator,)))
        patch(mock.patch.object(torch.utils.checkpoint, "get_device_states", _states_of_devices()))
        # checkpoint asks for it once in a process
        patch(mock.patch.object(torch.utils.checkpoint.DefaultDeviceType, "_default_device_type", "cuda"))
        # states of all random streams and what waits for a device need one
        patch(mock.patch.object(torch.cuda, "get_rng_state_all", list))
        patch(mock.patch.object(torch.cuda, "synchronize", lambda device=None: None))
        yield build
