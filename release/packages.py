"""The installed packages that others need, and environments that have few of them. Key functions: needed, with_packages."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

_OF_PIP = ("INSTALLER", "REQUESTED", "RECORD")


def needed(names: Iterable[str], left_out: Iterable[str] = ()) -> dict[str, Distribution]:
    """The packages with these names, and those that they need; without those that other platforms need."""
    asked = [name_of(name) for name in names]
    found: dict[str, Distribution] = {}
    todo = list(asked)
    while todo:
        name = todo.pop()
        if name in found or name in left_out:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if name in asked:
                raise
            continue
        todo += [name_of(one) for one in found[name].requires or () if not re.search(r"\bextra\s*==", one)]
    return {name: found[name] for name in sorted(found)}


def name_of(requirement: str) -> str:
    """The normalized name of the package that a requirement is about."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def files_of(package: Distribution) -> Iterator[tuple[Path, str]]:
    """Its files in site-packages, with their names there: modules, data, licences."""
    for file in package.files or ():
        name = file.as_posix()
        if file.parts[0] != ".." and "__pycache__" not in file.parts and file.name not in _OF_PIP:
            yield Path(str(package.locate_file(file))), name


def with_packages(folder: Path, names: Iterable[str], *, pip: bool = False) -> Path:
    """The Python of a new environment in ``folder`` with links to these packages and to those that they need."""
    subprocess.run([sys.executable, "-m", "venv", *([] if pip else ["--without-pip"]), str(folder)], check=True)
    link(folder, names)
    return folder / "bin" / "python"


def link(folder: Path, names: Iterable[str]) -> None:
    """Adds packages to an environment, except those that it has."""
    for package in needed(names).values():
        for top in {name.split("/")[0] for _, name in files_of(package)}:
            place = site_packages(folder) / top
            if not place.exists():  # packages can share a folder
                place.symlink_to(str(package.locate_file(top)))


def site_packages(folder: Path) -> Path:
    """Where an environment has its packages."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
