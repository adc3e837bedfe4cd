"""Bare imports: modules of a process that lives for months, without the texts that are written for their readers."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from dis import hasconst
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from inspect import CO_NEWLOCALS
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_ONLY_TEXTS = frozenset({"numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"})  # docstrings of C functions
_FIRST = frozenset((code, 0) for code in hasconst)  # what asks for the first of the constants


@contextmanager
def bare_imports() -> Iterator[None]:
    """Leave docstrings out of all that is imported meanwhile.

    They are a twentieth of what a watcher holds, numpy's above all, and nothing there ever shows one. Python's own
    way, ``-OO``, leaves out assertions as well, and finds nothing of what was compiled at the installation.
    """
    hook = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_BareLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    try:
        yield
    finally:
        sys.path_hooks.remove(hook)
        sys.path_importer_cache.clear()


class _BareLoader(SourceFileLoader):
    """Loads a module as ever, but for its docstrings."""

    def get_code(self, fullname: str) -> CodeType | None:
        if fullname in _ONLY_TEXTS:
            return compile("", self.path, "exec")
        code = super().get_code(fullname)
        return None if code is None else _bare(code)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__doc__ = None
        for kind in [each for each in vars(module).values() if isinstance(each, type)]:
            if kind.__module__ == module.__name__ and isinstance(vars(kind).get("__doc__"), str):
                with suppress(AttributeError, TypeError):  # one that cannot be written
                    kind.__doc__ = None


def _bare(code: CodeType) -> CodeType:
    """Return code whose functions have no docstrings, which are the first of their constants."""
    constants = [_bare(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    documented = code.co_flags & CO_NEWLOCALS and not code.co_name.startswith("<") and isinstance(constants[0], str)
    if documented and _FIRST.isdisjoint(zip(code.co_code[::2], code.co_code[1::2], strict=True)):
        constants[0] = None  # else the function says somewhere what its docstring says
    return code.replace(co_consts=tuple(constants))
