"""The last run of each program, kept for the editor's next start: findings return with the window. Key type: KeptRuns.

A file holds a report and the texts that ran. Where a text has changed since, its lines are found again as after an edit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lsp_server.server.targets import Target
from magpy_core import __version__
from magpy_core.findings import Report

log = logging.getLogger(__name__)
_LARGEST = 32 << 20
"""Bytes of a file: what captures look like in detail, which can be more, is left out then."""


@dataclass(frozen=True)
class Kept:
    """A run that has ended. ``texts``: the lines of the files that it is about, by key. ``ended_ms``: since the epoch."""

    target: Target
    mode: str
    report: Report
    texts: Mapping[str, list[str]]
    seconds: float
    ended_ms: int


class KeptRuns:
    """The files in ``folder``, one for each program; None: nothing is kept."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def write(self, kept: Kept) -> None:
        if self._folder is None or kept.target.notebook:
            return  # a notebook's script is made for one run
        text = _text(kept)
        file = self._file(self._folder, kept.target.key)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        except OSError as error:
            log.warning("the run of %s is not kept: %s", kept.target.entrypoint, error)
            with suppress(OSError):
                partial.unlink()

    def read(self) -> Iterator[Kept]:
        """What is there, the oldest run first. Another version's files, and damaged ones, are not read."""
        found = []
        for file in self._folder.glob("*.json") if self._folder is not None else ():
            try:
                data = json.loads(file.read_text(encoding="utf-8"))
                if data.pop("version") == __version__:
                    target = Target(**{**data["target"], "args": _tuple(data["target"]["args"])})
                    found.append(Kept(**{**data, "target": target, "report": Report.from_json(data["report"])}))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%s can't be read: %r", file, error)
        return iter(sorted(found, key=lambda kept: kept.ended_ms))

    def forget(self, key: str) -> None:
        if self._folder is not None:
            self._file(self._folder, key).unlink(missing_ok=True)

    def clear(self) -> None:
        for file in self._folder.glob("*.json") if self._folder is not None else ():
            file.unlink(missing_ok=True)

    @staticmethod
    def _file(folder: Path, key: str) -> Path:
        return folder / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def _text(kept: Kept) -> str:
    data: dict[str, Any] = {
        "version": __version__,
        "target": asdict(kept.target),
        "mode": kept.mode,
        "report": kept.report.to_json(),
        "texts": kept.texts,
        "seconds": kept.seconds,
        "ended_ms": kept.ended_ms,
    }
    text = json.dumps(data)
    if len(text) > _LARGEST:
        data["report"].pop("details", None)
        text = json.dumps(data)
    return text


def _tuple(args: list[str] | None) -> tuple[str, ...] | None:
    return None if args is None else tuple(args)
