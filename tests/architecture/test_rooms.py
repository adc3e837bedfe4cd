"""The house rules that a reviewer should not have to repeat: small rooms, honest names, mirrored tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "base", "core", "manager"}
MODULES = sorted([*(ROOT / "unveil").rglob("*.py"), *(ROOT / "tui/unveil_tui").rglob("*.py")])
MODULES = [module for module in MODULES if "_content" not in module.parts]

# Modules whose behaviour shows only in a bigger test, and which one.
TESTED_ELSEWHERE = {
    "unveil/cli": "tests/cli",
    "unveil/benchmarks": "tests/benchmarks",
    "unveil/host/sources": "tests/host",
    "unveil/host/parsers": "tests/host",
    "unveil/detection/detectors": "tests/detection",
    "tui/unveil_tui": "tests/tui",
}


def name(module: Path) -> str:
    return str(module.relative_to(ROOT))


def test_a_module_is_a_small_room_with_a_sign_on_its_door() -> None:
    wrong = [f"{name(module)}: {what}" for module in MODULES for what in _wrong_with(module)]
    assert not wrong, "\n".join(wrong)


def _wrong_with(module: Path) -> Iterator[str]:
    text = module.read_text()
    tree = _tree(module)
    if not ast.get_docstring(tree):
        yield "a module opens with a docstring"
    if text.count("\n") > 400:
        yield "a room over 400 lines is two rooms"
    if module.stem in FORBIDDEN_NAMES:
        yield "a room is named for what is in it"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60:
            yield f"{node.name} is longer than 60 lines"
    if module.name == "__init__.py" and len(tree.body) != 1:
        yield "an __init__ holds its docstring only"


@cache
def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def test_every_room_has_its_tests_and_every_test_its_room() -> None:
    missing = []
    for module in MODULES:
        if module.name == "__init__.py" or module.name == "__main__.py":
            continue
        relative = name(module)
        if any(relative.startswith(f"{place}/") for place in TESTED_ELSEWHERE):
            continue
        if not any(isinstance(node, ast.FunctionDef) for node in ast.walk(_tree(module))):
            continue  # plain records
        room = Path(relative).parent.relative_to("unveil")
        folder = ROOT / "tests" / room
        if not list(folder.glob(f"test_{module.stem}*.py")):
            missing.append(relative)
    assert not missing, f"no tests/…/test_<module>.py for: {missing}"
    assert all((ROOT / tests).is_dir() for tests in TESTED_ELSEWHERE.values())


def test_the_command_line_opens_without_the_heavy_libraries() -> None:
    heavy = ["textual", "ansible_runner", "sklearn", "pyarrow", "watchdog", "jsonschema", "pynvml", "rich"]
    program = f"import sys, unveil.cli.main; print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


def test_the_watcher_runs_without_the_heavy_libraries() -> None:
    heavy = ["textual", "ansible_runner", "sklearn", "pyarrow", "pynvml", "rich", "jinja2", "jsonschema"]
    heavy += ["_hashlib", "statistics", "decimal", "tomllib", "difflib", "uuid", "numpy.ma"]
    loaded = "unveil.cli.watch, unveil.engine.settings, unveil.engine.watch"
    program = f"import sys, {loaded}; print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"
