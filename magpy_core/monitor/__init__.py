"""Execution-state interface: frame interception, instrumented clones, events.

class Log(Observer):
    def attr_read(self, site, obj): print(site_location(site), type(obj), site.name)

with record(Log()): model(x)
"""

from magpy_core._compat.torch.eval_frame import Frame, disable, never_intercept, restore
from magpy_core._compat.versions import UnsupportedVersion, check_versions
from magpy_core.monitor.events import Observer, Site
from magpy_core.monitor.positions import (
    call_path,
    current_globals,
    frame_location,
    site_location,
    user_frame,
)
from magpy_core.monitor.record import is_own_file, record

__all__ = [
    "Frame",
    "Observer",
    "Site",
    "UnsupportedVersion",
    "call_path",
    "check_versions",
    "current_globals",
    "disable",
    "frame_location",
    "is_own_file",
    "never_intercept",
    "record",
    "restore",
    "site_location",
    "user_frame",
]
