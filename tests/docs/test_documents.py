"""The documents say what is so: commands run, tables equal the code."""

from __future__ import annotations

import argparse
import configparser
import dataclasses
import inspect
import itertools
import re
import shlex
import shutil
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from unveil import errors
from unveil.cli.main import COMMANDS, build_parser
from unveil.engine.settings import Settings, load_settings
from unveil.knowledge.checks import CHECKS
from unveil.knowledge.loading import load
from unveil.records.run import RunState
from unveil.remediation.lifecycle import RESUME, TERMINAL, diagram

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
CONTENT = ("fingerprints", "playbooks", "schemas", "inventory")
AUTHORING = "docs/AUTHORING.md"

# Commands that are shown and not run here, with the reason: (document or "", beginning of the command) → why. They
# have to be understood by the parser all the same, and an entry that no command needs is an error.
NOT_RUN = {
    "make demo": "builds an environment; .ci/run does it",
    "make test": "builds an environment and runs all tests; .ci/run does it",
    "python3 -m venv /opt/unveil": "writes to /opt",
    "/opt/unveil/bin/pip install": "writes to /opt, and needs the package index",
    "ln -s /opt/unveil": "writes to /usr/local",
    "install -d -m 755 /etc/unveil/kb": "writes to /etc",
    "cp -r fingerprints": "writes to /etc",
    "unveil kb lint --kb /etc/unveil/kb": "needs the copy in /etc",
    "unveil watch": "runs until it is stopped; the fixture starts one, with less",
    "unveil tui": "needs a terminal; tests/tui drives it",
    "ssh -N -L": "needs another host",
    "unveil record": "takes minutes; tests/host/test_recording.py writes recordings",
    "unveil gpu re": "needs GPUs; tests/engine/test_gpu_orders.py goes this way",
    "unveil replay slow-node.parquet": "needs that recording",
    "unveil explain EPISODE": "needs an episode; tests/journeys goes this way",
    "unveil episodes --ticket EPISODE": "needs an episode; tests/cli/test_ticket.py writes them",
    "unveil explain e": "needs an episode; tests/journeys goes this way",
    "unveil runs plan": "needs an episode; tests/journeys goes this way",
    "unveil runs approve": "needs a plan; tests/journeys goes this way",
    "unveil runs apply": "changes this host; tests/journeys goes this way",
    "unveil runs rollback": "changes this host; tests/journeys goes this way",
    "unveil runs show": "needs a run; tests/journeys goes this way",
    "unveil runs reset": "needs a breaker that is open; tests/engine/test_run_orders.py resets it",
    "unveil runs release": "tests/engine/test_run_orders.py goes this way",
    "unveil fleet": "needs hosts; tests/journeys/test_fleet.py makes three and goes this way",
    "unveil episodes --open": "its output needs an episode; `unveil episodes` is run below",
}
MAY_FIND = ("status", "doctor", "explain", "replay", "kb")  # for these exit 1 is an answer, not a failure


@dataclass(frozen=True)
class Block:
    """A fenced block; *note* is the HTML comment right before it."""

    document: str
    line: int
    language: str
    text: str
    note: str


@dataclass(frozen=True)
class Shown:
    """A command that a block shows, and the lines that it shows below it."""

    block: Block
    command: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block.document}:{self.block.line} {self.command[:60]}"


def blocks_of(document: str) -> list[Block]:
    text = (ROOT / document).read_text()
    found = []
    for fence in FENCE.finditer(text):
        comment = re.search(r"<!--\s*((?:(?!-->).)*?)\s*-->\Z", text[: fence.start()].rstrip(), re.DOTALL)
        body = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(document, line, fence["language"], body, comment[1] if comment else ""))
    return found


def commands_of(block: Block) -> list[Shown]:
    """Return the commands of a block: of ``console`` the lines after ``$``, of ``sh`` every line."""
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        return [Shown(block, " ".join(line.split()), ()) for line in lines]
    shown: list[Shown] = []
    for line in text.splitlines() if block.language == "console" else ():
        if line.startswith("$ "):
            shown.append(Shown(block, line[2:].strip(), ()))
        elif shown:
            shown[-1] = Shown(block, shown[-1].command, (*shown[-1].output, line))
    return shown


DOCUMENTS = [
    str(path.relative_to(ROOT))
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / name / "README.md" for name in CONTENT)])
    if path.exists()
]
BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]
SHOWN = [shown for block in BLOCKS for shown in commands_of(block)]


def reason_not_to_run(shown: Shown) -> str | None:
    return next((beginning for beginning in NOT_RUN if shown.command.startswith(beginning)), None)


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


def rows(document: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    section = re.split(r"^#+ ", text_of(document).split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    first = re.search(r"(?:^ *\|.*\n)+", section, re.MULTILINE)
    assert first, f"{document} has no table below {heading!r}"
    table = [re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in first[0].splitlines()]
    return [[cell.strip().replace("\\|", "|") for cell in line] for line in table[2:]]


# Commands


def parse(words: list[str]) -> argparse.Namespace:
    return build_parser(words[0] if words else None).parse_args(words)


@pytest.mark.parametrize("shown", [each for each in SHOWN if each.command.startswith("unveil ")], ids=str)
def test_a_command_that_is_shown_is_one_that_there_is(shown: Shown) -> None:
    words = shlex.split(re.split(r" [|>&]", shown.command)[0])
    parse(words[1:])


def test_the_steps_of_the_workflow_are_commands_that_there_are() -> None:
    workflow = (ROOT / "docs/examples/knowledge-review.yml").read_text().replace(">-\n          ", "")
    steps = re.findall(r"run: unveil (.+)", workflow)
    assert len(steps) >= 3
    for step in steps:
        parse(shlex.split(re.split(r" (?:>|\|\|)", step)[0]))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_in_the_text_exist(document: str) -> None:
    actions = {"kb": _actions("kb"), "runs": _actions("runs")}
    for mention in re.findall(r"`(unveil [a-z][^`]*)`", text_of(document)):
        words = mention.split()
        assert words[1] in COMMANDS, mention
        if words[1] in actions and len(words) > 2:
            assert set(words[2].split("|")) <= set(actions[words[1]]), mention


def _actions(command: str) -> tuple[str, ...]:
    parser = build_parser(command)
    choices: Any = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    inner = next(each for each in choices[command]._actions if isinstance(each, argparse._SubParsersAction))
    return tuple(inner.choices)


def test_a_command_is_not_left_out_without_need() -> None:
    needed = {reason_not_to_run(shown) for shown in SHOWN}
    assert not set(NOT_RUN) - needed


IN_A_CLONE = "one after the other, in a clone"  # note of a block whose commands build on each other
RUN = [
    each
    for each in SHOWN
    if reason_not_to_run(each) is None and each.block.document != AUTHORING and each.block.note != IN_A_CLONE
]


@pytest.fixture(scope="module")
def answers(watcher: None, desk: Any) -> Iterator[dict[str, Future[Any]]]:
    """Run every command once, side by side: a document may show it again, and one of them takes ten seconds."""
    with ThreadPoolExecutor(max_workers=3) as pool:
        yield {command: pool.submit(desk.run, command) for command in dict.fromkeys(each.command for each in RUN)}


@pytest.mark.xdist_group("answers")  # else each worker would run them all
@pytest.mark.parametrize("shown", RUN, ids=str)
def test_a_command_that_is_shown_runs_and_says_what_is_shown(shown: Shown, answers: dict[str, Future[Any]]) -> None:
    agree(shown, answers[shown.command].result())


def test_the_worked_example_of_a_fingerprint_goes_as_the_page_says(workbench: Any) -> None:
    line = next(
        number for number, text in enumerate(text_of(AUTHORING).splitlines(), 1) if text == "## Begin from a draft"
    )
    follow([block for block in BLOCKS if block.document == AUTHORING and block.line < line], workbench)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_that_the_authors_page_shows_goes_as_it_says(tmp_path: Path, workbench: Any) -> None:
    for name in CONTENT:
        shutil.copytree(ROOT / name, tmp_path / name)
    follow([block for block in BLOCKS if block.document == AUTHORING], dataclasses.replace(workbench, folder=tmp_path))


def follow(blocks: list[Block], workbench: Any) -> None:
    """Write the files that blocks name, and run their commands, one after the other."""
    written = 0
    for block in blocks:
        if named := re.match(r"# ([a-z][\w./]+\.yml)\n", block.text):
            path = workbench.folder / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text[named.end() :])
            written += 1
        for shown in commands_of(block):
            agree(shown, workbench.run(shown.command))
    assert written >= 4
    assert load(workbench.folder).knowledge is not None


@pytest.mark.slow
def test_a_strangers_path_from_a_draft_to_a_review_goes_as_the_readme_says(tmp_path: Path, workbench: Any) -> None:
    for name in CONTENT:
        shutil.copytree(ROOT / name, tmp_path / name)
    clone = dataclasses.replace(workbench, folder=tmp_path)
    clone.run("git config --global user.name a; git config --global user.email a@b")
    clone.run("git init -q -b main . && git add -A && git commit -qm begin")
    path = [each for each in SHOWN if each.block.document == "README.md" and each.block.note == IN_A_CLONE]
    actions = [each.command.split()[2] for each in path if each.command.startswith("unveil kb ")]
    assert actions == ["new", "lint", "test", "backtest", "diff"]
    for shown in path:
        ended = clone.run(shown.command)
        agree(shown, ended)
        assert ended.returncode == (1 if "kb diff" in shown.command else 0)  # a difference is a difference
    assert load(tmp_path).problems == ()


def agree(shown: Shown, ended: Any) -> None:
    """Compare what a command said with what the document shows: its lines in order, gaps where a ``…`` stands."""
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said
    allowed = (0, 1) if set(MAY_FIND) & set(shown.command.split()) else (0,)
    assert ended.returncode in allowed, said
    lines = [plain(line) for line in said.splitlines()]
    expected = [plain(line) for line in shown.output]
    if shown.block.note.startswith("of one host"):  # numbers differ, the heads of tables do not
        expected = [line for line, below in itertools.pairwise(expected) if below.startswith("──")]
    place = 0
    for line in (each for each in expected if each and each != "…" and not each.startswith("──")):
        assert line in lines[place:], f"{shown} does not say: {line}\nbut:\n{said}"
        place = lines.index(line, place) + 1


def plain(line: str) -> str:
    """Return a line without what differs each time: blanks, ids of episodes, the rules of tables."""
    return re.sub(r"\be[0-9a-f]{12}\b", "eID", " ".join(line.split()))


# Tables that must equal the code


def test_every_command_has_its_line_in_the_operators_page() -> None:
    told = {
        cells[0].strip("`").removeprefix("unveil "): cells[1] for cells in rows("docs/OPERATING.md", "All commands")
    }
    assert told == COMMANDS


def test_the_table_of_settings_is_that_of_the_code() -> None:
    table = rows("docs/OPERATING.md", "Settings")
    defaults = {field.name: field.default for field in fields(Settings)}
    assert [cells[0].strip("`") for cells in table] == list(defaults)
    flags = {flag for action in _watch_parser()._actions for flag in action.option_strings}
    for name, variable, flag, default, meaning in table:
        setting = name.strip("`")
        assert variable == f"`UNVEIL_{setting.upper()}`"
        own = f"--{setting.replace('_', '-')}"
        negative = f"--no-{setting}"
        assert flag == next((f"`{each}`" for each in (own, negative) if each in flags), ""), setting
        assert meaning
        if setting not in ("state_dir", "kb"):
            assert default.strip("`") == str(defaults[setting]).replace("True", "true").replace("False", "false"), (
                setting
            )


def _watch_parser() -> argparse.ArgumentParser:
    parser = build_parser("watch")
    choices: Any = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    found: argparse.ArgumentParser = choices["watch"]
    return found


def test_the_example_of_a_settings_file_is_one(tmp_path: Path) -> None:
    examples = [block.text for block in BLOCKS if block.language == "toml"]
    assert examples
    for number, text in enumerate(examples):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        settings = load_settings({}, environment={}, files=(file,))
        assert {name: str(getattr(settings, name)) for name in tomllib.loads(text)} == {
            name: str(value) for name, value in tomllib.loads(text).items()
        }


def test_the_exit_codes_are_those_of_the_errors() -> None:
    told: dict[str, int] = {}
    for cells in rows("docs/OPERATING.md", "Exit codes"):
        told |= dict.fromkeys(re.findall(r"`(\w+Error)`", cells[2]), int(cells[0]))
    kinds = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.UnveilError)]
    assert told == {kind.__name__: kind.exit_code for kind in kinds}


def test_the_units_keep_playbooks_alive_and_start_what_there_is() -> None:
    units = []
    for block in (each for each in BLOCKS if each.language == "ini"):
        unit = configparser.ConfigParser(interpolation=None, strict=True)
        unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys keep their case
        unit.read_string(block.text)
        units.append(unit)
    service = next(unit for unit in units if "Install" in unit)["Service"]
    assert service["KillMode"] == "process"
    assert service["StateDirectoryMode"] == "0700"
    parse(shlex.split(service["ExecStart"])[1:])


def test_the_diagram_of_the_lifecycle_is_drawn_from_the_table() -> None:
    assert f"```mermaid\n{diagram()}```" in text_of("docs/LIFECYCLE.md"), "print it anew as the page says"


def test_every_state_of_a_run_is_explained() -> None:
    told = [cells[0].strip("`") for cells in rows("docs/LIFECYCLE.md", "What the states mean")]
    assert sorted(told) == sorted(map(str, RunState))
    ends = " ".join(cells[0] for cells in rows("docs/OPERATING.md", "How a run can end"))
    assert set(re.findall(r"`(\w+)`", ends)) == {str(state) for state in TERMINAL}
    resumed = " ".join(cells[0] for cells in rows("docs/LIFECYCLE.md", "After a restart of the watcher"))
    assert set(re.findall(r"`(\w+)`", resumed)) == {str(state) for state in RESUME}


def test_the_groups_of_checks_are_all_of_them() -> None:
    told = {cells[0].rstrip("…") for cells in rows(AUTHORING, "The checks of `kb lint`")}
    assert told == {check[:2] for check in CHECKS}
    for mentioned in re.findall(r"\bK\d{3}\b", "".join(map(text_of, DOCUMENTS))):
        assert mentioned in CHECKS


ALERTS = [block for block in BLOCKS if block.language == "yaml" and block.text.startswith("- alert: ")]


def test_an_alert_asks_for_series_that_the_watcher_serves() -> None:
    served = "".join(path.read_text() for path in (ROOT / "unveil/engine").glob("metrics*.py"))
    assert ALERTS
    for block in ALERTS:
        (rule,) = yaml.safe_load(block.text)
        assert set(rule) == {"alert", "expr", "for"}
        series = re.findall(r"\bunveil_(\w+)", rule["expr"])
        assert series
        for name in series:
            assert f'"{name.removesuffix("_total")}"' in served or f'unveil_{name.removesuffix("_total")}"' in served, (
                name
            )


def test_the_examples_of_a_sites_own_files_are_right(tmp_path: Path) -> None:
    for name in CONTENT:
        shutil.copytree(ROOT / name, tmp_path / name)
    for block in (each for each in BLOCKS if each.document == "docs/OPERATING.md" and each.language == "yaml"):
        if named := re.match(r"# (inventory/[\w./]+\.yml)\n", block.text):
            (tmp_path / named[1]).parent.mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(block.text)
        elif block not in ALERTS:
            assert "profiles:" in block.text
            head = "apiVersion: unveil/v1\nkind: Profiles\n"
            (tmp_path / "inventory/profiles.yml").write_text(head + block.text)
    loaded = load(tmp_path, now_s=1.8e9)  # a day in January 2027: filters expire
    assert loaded.problems == ()
    assert loaded.knowledge is not None
    assert loaded.knowledge.filters
