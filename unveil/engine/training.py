"""Training beside the watch: a child fits, the watcher adopts, and what was learned outlives the process.

What is not asked is not trained: in a young watch a training costs more than all the watching. The default rule asks
no detector that needs one.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.detection.catalogue import DETECTORS
from unveil.detection.model import trained_model
from unveil.engine.model_files import load_arrays, save_arrays
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.detection.detector import Arrays
    from unveil.detection.ensemble import Ensemble
    from unveil.detection.model import TrainedModel, TrainingSet
    from unveil.detection.rule import Rule
    from unveil.engine.state_dir import StateDir

_LOG = logging.getLogger(__name__)
SAVE_EVERY_S = 600.0
DEADLINE_S = 300.0  # a fit takes seconds; on a host that is starved it is given up, and tried again later


def _command(source: Path, target: Path, seed: int) -> list[str]:
    return [sys.executable, "-P", "-m", "unveil.engine.training_child", str(source), str(target), str(seed)]


def train_now(training_set: TrainingSet, *, seed: int = 0) -> TrainedModel:
    """Fit in a child and wait for it: for a replay, where time stands still meanwhile.

    Raises:
        UnveilError: the child failed; its own words.
    """
    with tempfile.TemporaryDirectory(prefix="unveil-train-") as folder:
        source, target = Path(folder) / "set", Path(folder) / "model"
        save_arrays(source, training_set.arrays())
        ended = subprocess.run(_command(source, target, seed), capture_output=True, text=True, check=False)
        arrays = load_arrays(target) if ended.returncode == 0 else None
        if arrays is None:
            raise UnveilError(f"training failed: {ended.stderr.strip()[-500:]}")
        return trained_model(arrays)


def asks_trained(rule: Rule) -> bool:
    """Return whether some detector that a rule names needs a training."""
    return any(kind.in_child and kind.name in rule.members for kind in DETECTORS)


class Training:
    """Trains an ensemble whenever it wants to be, and keeps its reference and model in the state directory."""

    def __init__(self, state_dir: StateDir, ensemble: Ensemble, *, always: bool = False) -> None:
        """Take up what an earlier watcher learned, as far as it still fits.

        Args:
            always: train also what the rule does not ask, so that it votes beside.
        """
        self._state_dir = state_dir
        self._ensemble = ensemble
        self._trains = always or asks_trained(ensemble.rule)
        self._child: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._started_s = 0.0
        self._trained_s: float | None = None
        self._not_before_s = 0.0
        self._saved_s = 0.0
        for left in state_dir.path.glob("train-*"):  # of a watcher that was killed while it trained
            shutil.rmtree(left, ignore_errors=True)
        self._take_up()

    @property
    def trained(self) -> bool:
        """Return whether a trained model is in use."""
        return self._ensemble.model is not None

    def describe(self, now_s: float) -> str:
        """Return one phrase on what the detectors stand on."""
        reference, model = self._ensemble.reference, self._ensemble.model
        if reference is None or not reference.ready:
            return "learning what is normal here"
        if not self._trains:
            return f"{reference.windows} windows; the rule asks no detector that needs a training"
        if model is None:
            return "training" if self._child is not None else f"{reference.windows} windows, not trained yet"
        age = "" if self._trained_s is None else f", {(now_s - self._trained_s) / 60:.0f} min ago"
        return f"trained on {model.windows} windows{age}"

    def poll(self, now_s: float) -> str | None:
        """Look after the child, start one that is due, save now and then; never waits.

        Returns:
            What a person should know, None when all is well.
        """
        try:
            if self._child is not None:
                return self._follow(self._child, now_s)
            if self._trains and self._ensemble.wants_training and now_s >= self._not_before_s:
                self._start(now_s)
            elif now_s - self._saved_s >= SAVE_EVERY_S:
                self.save(now_s)
        except OSError as error:  # no room, no process left: what was learned is still in memory
            self._not_before_s = now_s + DEADLINE_S
            if self._child is None:
                self._forget()
            return f"what is learned here cannot be kept: {error.strerror or error}"
        return None

    def save(self, now_s: float) -> None:
        """Write down the reference, so that the next watcher need not learn it anew."""
        self._saved_s = now_s
        if state := self._ensemble.state():
            save_arrays(self._state_dir.reference, state)

    def close(self) -> None:
        """End the child, and save."""
        if self._child is not None:
            self._child.kill()  # it only computes; nothing is half done
            self._child.wait()
            self._forget()
        try:
            self.save(0.0)
        except OSError as error:
            _LOG.warning("what was learned here cannot be kept: %s", error.strerror)

    def _take_up(self) -> None:
        learned: list[tuple[Path, Callable[[Arrays], object]]]
        learned = [(self._state_dir.reference, self._ensemble.restore)]
        if self._trains:
            learned.append((self._state_dir.model, lambda arrays: self._ensemble.adopt(trained_model(arrays))))
        for path, take in learned:
            try:
                arrays = load_arrays(path)
                if arrays is not None:
                    take(arrays)
            except UnveilError as error:
                _LOG.warning("%s: it is learned anew", error.what)

    def _start(self, now_s: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="train-", dir=self._state_dir.path)
        source, target = Path(self._folder.name) / "set", Path(self._folder.name) / "model"
        save_arrays(source, self._ensemble.training_set().arrays())
        log = (Path(self._folder.name) / "log").open("wb")
        with log:
            self._child = subprocess.Popen(
                _command(source, target, 0), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._started_s = now_s

    def _follow(self, child: subprocess.Popen[bytes], now_s: float) -> str | None:
        code = child.poll()
        if code is None:
            if now_s - self._started_s > DEADLINE_S:
                child.kill()
            return None
        assert self._folder is not None
        folder = Path(self._folder.name)
        try:
            if code != 0:
                said = (folder / "log").read_text(errors="replace").strip()[-300:]
                self._not_before_s = now_s + DEADLINE_S
                return f"training ended with {code}: {said or 'no word'}; the models in use stay"
            arrays = load_arrays(folder / "model")
            if arrays is not None and self._ensemble.adopt(trained_model(arrays)):
                self._trained_s = now_s
                (folder / "model").replace(self._state_dir.model)
                self.save(now_s)
        except UnveilError as error:
            self._not_before_s = now_s + DEADLINE_S
            return f"a trained model was refused: {error.what}"
        finally:
            self._forget()
        return None

    def _forget(self) -> None:
        self._child = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
