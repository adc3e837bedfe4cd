"""What a watcher imports does what it says, but for its docstrings, which are not there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.engine.bare_imports import bare_imports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

TEXT = '''
"""A module."""
import enum
import functools

class Kind(enum.Enum):
    """A kind."""
    ONE = "one"

class Thing:
    """A thing."""
    __slots__ = ()
    def told(self):
        """Told."""
        return "told"
    @property
    def same(self):
        """same"""
        return "same"

def maker(text="text"):
    """Make."""
    def made(*, more="more"):
        """Made."""
        return text + more
    return made

def silent():
    return "silent"

def only():
    """Only."""

def spread():
    """Spread."""
    yield from ("a", "b")

short = lambda: "short"
names = ["name" for _ in range(2)]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "bare_one.py").write_text(TEXT)
    (tmp_path / "bare_two.py").write_text(TEXT)
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in ("bare_one", "bare_two"):
        sys.modules.pop(name, None)


def said(module: ModuleType) -> list[object]:
    thing = module.Thing()
    told = [module.Kind("one").name, thing.told(), thing.same, module.maker("a")(more="b"), module.maker()()]
    return [*told, module.silent(), module.only(), list(module.spread()), module.short(), module.names]


def test_a_module_says_the_same_without_its_docstrings(folder: Path) -> None:
    with bare_imports():
        bare = importlib.import_module("bare_one")
    whole = importlib.import_module("bare_two")
    assert said(bare) == said(whole)
    for each in (bare, bare.Kind, bare.Thing, bare.Thing.told, bare.maker, bare.maker(), bare.only, bare.spread):
        assert each.__doc__ is None
    assert bare.Thing.same.__doc__ == "same"  # a constant that is used stays what it is
    assert whole.__doc__ == "A module."
    assert whole.maker.__doc__ == "Make."
    assert whole.maker().__doc__ == "Made."


def test_imports_are_as_ever_afterwards_whatever_happened(folder: Path) -> None:
    before = list(sys.path_hooks)
    (folder / "bare_one.py").write_text("1 / 0")
    with pytest.raises(ZeroDivisionError), bare_imports():
        importlib.import_module("bare_one")
    assert sys.path_hooks == before
    assert importlib.import_module("bare_two").__doc__ == "A module."


def test_numpy_counts_without_its_texts() -> None:
    program = """
from unveil.engine.bare_imports import bare_imports
with bare_imports():
    import numpy
print(numpy.median.__doc__, numpy.median([1, 2, 9]), numpy.linalg.solve([[2.0]], [4.0])[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "2.0", "2.0"]
