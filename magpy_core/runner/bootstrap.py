"""The first code in the user's interpreter, passed with ``-c``. Key names: SOURCE, command, module_command,
engine_command.

It runs on any Python back to 2.7, because it has to report in one sentence that a Python is too old. It runs in a separate
namespace, so that it leaves ``__main__`` unchanged.
"""

from __future__ import annotations

import os

import magpy_core
from magpy_core._compat import versions

SUPPORTED_PYTHON = versions.PYTHON_VERSIONS
SUPPORTED_TORCH = (versions.TORCH_MIN, (versions.TORCH_MAX[0], versions.TORCH_MAX[1] + 1))
"""First supported, first unsupported."""

WITHOUT_FOLDER = """import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
"""
"""Begins what runs with ``-c``: nothing may be imported from the current folder, which ``-c`` adds to the path."""

SOURCE = r"""
import sys

at_start, path = list(sys.modules), list(sys.path)
import os

# PYTHONPATH may name the current folder, too: its modules are for the program.
try:
    here = os.path.realpath(os.getcwd())
except OSError:
    here = None  # it was deleted
sys.path[:] = [folder for folder in path if os.path.realpath(folder) != here]
import json


def opened(end, flags):
    if end.isdigit():
        return int(end)
    # The path of a named pipe, without the number of this rank of a distributed run.
    path = end + os.environ["RANK"]
    try:
        fd = os.open(path, flags | os.O_NONBLOCK)  # no waiting for a starter that has ended
    finally:
        os.remove(path)
        try:
            os.rmdir(os.path.dirname(path))  # by the last rank
        except OSError:
            pass
    os.set_blocking(fd, True)
    return fd


commands, out = opened(sys.argv[1], os.O_RDONLY), opened(sys.argv[2], os.O_WRONLY)
data = b""
while not data.endswith(b"\n"):
    chunk = os.read(commands, 65536)
    if not chunk:
        os._exit(1)
    data += chunk
request = json.loads(data.decode("ascii"))


def refuse(message):
    line = {"type": "failed", "code": "MP903", "message": message, "place": None}
    os.write(out, (json.dumps(line) + "\n").encode("ascii"))
    os._exit(2)


this = "%s (Python %s.%s)" % ((sys.executable,) + tuple(sys.version_info[:2]))
supported = ["%s.%s" % tuple(v) for v in request["python_versions"]]
implementation = getattr(getattr(sys, "implementation", None), "name", "cpython")
if list(sys.version_info[:2]) not in request["python_versions"] or implementation != "cpython":
    refuse("%s is not supported: MagPy runs on CPython %s; choose such an interpreter with --python."
           % (this, " or ".join(supported)))
try:
    try:
        import magpy_core
    except ImportError:
        sys.path[:] = path  # it may be installed there
        import magpy_core
except ImportError:
    import importlib.util  # it is not: this tool brings it, and nothing else of its environment
    spec = importlib.util.spec_from_file_location("magpy_core", os.path.join(request["root"], "__init__.py"))
    magpy_core = importlib.util.module_from_spec(spec)
    sys.modules["magpy_core"] = magpy_core
    spec.loader.exec_module(magpy_core)
if magpy_core.__version__ != request["version"]:
    refuse("MagPy %s is installed for %s, but this is MagPy %s: run `%s -m pip install %s==%s`."
           % (magpy_core.__version__, this, request["version"], sys.executable, request["distribution"], request["version"]))
from magpy_core.runner.child import main

main(request, commands, out, path, at_start)
"""


_ENGINE = """try:
    import magpy_core
except ImportError:
    import importlib.util
    spec = importlib.util.spec_from_file_location("magpy_core", {file!r})
    sys.modules["magpy_core"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["magpy_core"])
"""


def command(python: str, commands: str, out: str) -> list[str]:
    """The command line of a program. The request itself is sent through ``commands``, without quoting or a length limit.

    ``commands`` and ``out`` are descriptors that it inherits or paths of named pipes, to which the rank is appended.
    """
    source = f"{WITHOUT_FOLDER}exec({SOURCE!r}, {{'__name__': 'magpy_bootstrap'}})"
    return [python, "-c", source, commands, out]


def engine_command(python: str, code: str, *args: str) -> list[str]:
    """The command line that runs ``code``, which imports the engine: the installed one, else this one."""
    file = os.path.join(os.path.dirname(os.path.abspath(magpy_core.__file__)), "__init__.py")
    return [python, "-c", f"{WITHOUT_FOLDER}{_ENGINE.format(file=file)}{code}", *args]


def module_command(python: str, module: str) -> list[str]:
    """The command line that runs an installed module as ``python -m`` does, whatever the current folder contains."""
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [python, "-c", f"{WITHOUT_FOLDER}import runpy\n{run}"]
