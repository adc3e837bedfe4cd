"""TrainedModel: what a training leaves behind, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.reference import as_bytes, from_bytes
from unveil.errors import BadInputError
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays

FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainingSet:
    """What a training is given.

    Attributes:
        names: of the features, see ``DetectorInput.names``.
        residuals: shape (windows, features), distances from the centre on the compared scale, oldest first, NaN
            where absent.
        floor: shape (features,), least sigma of each.
        regime: of the reference that it was taken from.
    """

    names: tuple[str, ...]
    residuals: NDArray[np.float32]
    floor: NDArray[np.float64]
    regime: int

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return it as arrays, to be written to a file."""
        return {
            "format": np.array(FORMAT),
            "names": as_bytes(self.names),
            "residuals": self.residuals,
            "floor": self.floor,
            "regime": np.array(self.regime),
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainedModel:
    """Fitted detectors and the held-out scores that calibrate them.

    Attributes:
        names: the features it was trained on; a scope with others uses those that it shares.
        scale: shape (features,), the sigmas it was trained with; NaN where a feature had too few values.
        detectors: detector → arrays for its ``restore``.
        held_out: detector → score of each training window by a detector that was fitted without its stretch of time,
            oldest first.
        windows: how many it was trained on.
        regime: see ``TrainingSet``.
    """

    names: tuple[str, ...]
    scale: NDArray[np.float64]
    detectors: Mapping[str, Arrays]
    held_out: Mapping[str, NDArray[np.float64]]
    windows: int
    regime: int

    @property
    def digest(self) -> str:
        """Return a hash of the feature names."""
        return sha256(as_bytes(self.names).tobytes()).hexdigest()

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return it as arrays, to be written to a file."""
        fitted = {
            f"fit/{name}/{key}": value for name, arrays in self.detectors.items() for key, value in arrays.items()
        }
        held_out = {f"held_out/{name}": scores for name, scores in self.held_out.items()}
        return {
            "format": np.array(FORMAT),
            "names": as_bytes(self.names),
            "scale": self.scale,
            "windows": np.array(self.windows),
            "regime": np.array(self.regime),
            **fitted,
            **held_out,
        }


def training_set(arrays: Arrays) -> TrainingSet:
    """Return the training set that ``TrainingSet.arrays`` gave.

    Raises:
        BadInputError: the arrays are none.
    """
    try:
        _check_format(arrays)
        return TrainingSet(
            names=from_bytes(arrays["names"]),
            residuals=np.asarray(arrays["residuals"], dtype=np.float32),
            floor=np.asarray(arrays["floor"], dtype=np.float64),
            regime=int(arrays["regime"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise BadInputError(f"no training set: {error}", hint="it is made anew at the next training") from error


def trained_model(arrays: Arrays) -> TrainedModel:
    """Return the model that ``TrainedModel.arrays`` gave.

    Raises:
        BadInputError: the arrays are none.
    """
    try:
        _check_format(arrays)
        detectors: dict[str, dict[str, NDArray[np.generic]]] = {}
        for key in (key for key in arrays if key.startswith("fit/")):
            _, name, part = key.split("/")
            detectors.setdefault(name, {})[part] = arrays[key]
        return TrainedModel(
            names=from_bytes(arrays["names"]),
            scale=np.asarray(arrays["scale"], dtype=np.float64),
            detectors=detectors,
            held_out={
                key.removeprefix("held_out/"): np.asarray(arrays[key], dtype=np.float64)
                for key in arrays
                if key.startswith("held_out/")
            },
            windows=int(arrays["windows"]),
            regime=int(arrays["regime"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise BadInputError(f"no trained model: {error}", hint="it is trained anew") from error


def _check_format(arrays: Arrays) -> None:
    if int(arrays["format"]) != FORMAT:
        raise ValueError(f"format {int(arrays['format'])}, this version reads {FORMAT}")
