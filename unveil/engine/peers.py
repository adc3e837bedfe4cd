"""PEERS: other people's detectors behind our interface, for `unveil eval --peers`. The only door to PyOD.

ECOD, COPOD, HBOS, LOF and an autoencoder are PyOD's (Zhao, Nasrullah and Li, JMLR 2019) with its own defaults, but for
the seed. The variational autoencoder is after Prodigy (Aksar et al., SC 2023): features brought to 0..1, a hidden layer
of half of them, a latent one of a third, squared error and divergence to learn by, mean absolute error as the score.

Neither PyOD nor PyTorch is needed at run time: both are in the extra ``peers``. A fitted peer is an object, which
travels in an array of one; it is never written to a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.detection.detector import DetectorKind, Score, neutral

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Estimators

    Judge = Callable[[NDArray[np.float64]], float]

_LARGEST = 1e30
_VAE_EPOCHS, _VAE_BATCH, _VAE_RATE = 60, 64, 1e-3
HINT = "pip install 'unveil[peers]'"


@dataclass(frozen=True, slots=True, eq=False)
class Peer:
    """Score: the peer's own, higher is stranger. Contributions: none, it does not say who moved it."""

    judge: Judge

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window; see ``Detector``."""
        score = self.judge(neutral(z))
        bounded = _LARGEST if isnan(score) else min(max(score, -_LARGEST), _LARGEST)  # NaN: too far out to be told
        return Score(score=bounded, contributions=np.zeros(len(z)))


def peers() -> tuple[tuple[DetectorKind, ...], dict[str, str]]:
    """Return the peers that can be had here, and those that cannot, with the reason."""
    missing = {name: find_spec(name) is None for name in ("pyod", "torch")}
    found, absent = [], {}
    for name, (needs, meaning, fit) in _PEERS.items():
        lacking = [need for need in needs if missing[need]]
        if lacking:
            absent[name] = f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed"
        else:
            found.append(DetectorKind(name=name, meaning=meaning, fit=fit, restore=_restore, in_child=True))
    return tuple(found), absent


def _boxed(judge: Judge) -> dict[str, NDArray[np.generic]]:
    box = np.empty(1, dtype=np.object_)
    box[0] = judge
    return {"judge": box}


def _restore(arrays: Arrays) -> Peer:
    judge: Any = arrays["judge"][0]
    return Peer(judge)


def _pyod(
    module: str, name: str, options: dict[str, Any], z: NDArray[np.float64], _: Estimators | None, seed: int
) -> dict[str, NDArray[np.generic]]:
    """Fit one of PyOD's detectors."""
    kind = getattr(import_module(f"pyod.models.{module}"), name)
    _sow(seed)
    seeded = {"random_state": seed} if name == "AutoEncoder" else {}
    model = kind(**options, **seeded)
    with np.errstate(all="ignore"):  # ECOD and COPOD take the skewness of what never moved
        model.fit(neutral(z))
    return _boxed(partial(_pyod_score, model))


def _pyod_score(model: Any, z: NDArray[np.float64]) -> float:
    with np.errstate(all="ignore"):
        return float(model.decision_function(z.reshape(1, -1))[0])


def _sow(seed: int) -> None:
    """Make PyTorch repeat itself, if it is there."""
    if find_spec("torch") is not None:
        torch: Any = import_module("torch")
        torch.manual_seed(seed)
        torch.set_num_threads(1)


def _vae(z: NDArray[np.float64], _: Estimators | None, seed: int) -> dict[str, NDArray[np.generic]]:
    """Fit a variational autoencoder as Prodigy has it."""
    torch: Any = import_module("torch")
    _sow(seed)
    rows = neutral(z)
    low, span = rows.min(axis=0), np.ptp(rows, axis=0)
    span[span < 1e-9] = 1.0  # what never moved: a sigma is its unit
    width = z.shape[1]
    hidden, latent = max(width // 2, 1), max(width // 3, 1)
    nn = torch.nn
    encoder = nn.Sequential(nn.Linear(width, hidden), nn.ReLU())
    to_mean, to_log = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
    decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, width))
    parts = nn.ModuleList([encoder, to_mean, to_log, decoder])
    optimiser = torch.optim.Adam(parts.parameters(), lr=_VAE_RATE)
    data = torch.tensor((rows - low) / span, dtype=torch.float32)
    for _epoch in range(_VAE_EPOCHS):
        for batch in data[torch.randperm(len(data))].split(_VAE_BATCH):
            seen = encoder(batch)
            mean, log = to_mean(seen), to_log(seen).clamp(-10.0, 10.0)
            said = decoder(mean + torch.randn_like(mean) * torch.exp(log / 2))
            divergence = -0.5 * (1 + log - mean.square() - log.exp()).sum(dim=1).mean()
            loss = (said - batch).square().sum(dim=1).mean() + divergence
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return _boxed(partial(_vae_score, torch, (encoder, to_mean, decoder), low, span))


def _vae_score(
    torch: Any,
    layers: tuple[Any, Any, Any],
    low: NDArray[np.float64],
    span: NDArray[np.float64],
    z: NDArray[np.float64],
) -> float:
    encoder, to_mean, decoder = layers
    scaled = np.clip((z - low) / span, -1e6, 1e6)
    with torch.no_grad():
        window = torch.tensor(scaled.reshape(1, -1), dtype=torch.float32)
        return float((decoder(to_mean(encoder(window))) - window).abs().mean())


_ENCODER = {"preprocessing": False, "verbose": 0, "epoch_num": 30}  # what it is given is standardised already
_PEERS: dict[str, tuple[tuple[str, ...], str, Any]] = {
    "ecod": (("pyod",), "PyOD: tails of each feature's distribution", partial(_pyod, "ecod", "ECOD", {})),
    "copod": (("pyod",), "PyOD: tails of the features' copula", partial(_pyod, "copod", "COPOD", {})),
    "hbos": (("pyod",), "PyOD: histograms of the features", partial(_pyod, "hbos", "HBOS", {})),
    "lof": (("pyod",), "PyOD: density beside that of the neighbours", partial(_pyod, "lof", "LOF", {})),
    "autoencoder": (
        ("pyod", "torch"), "PyOD: what an autoencoder fails to reproduce",
        partial(_pyod, "auto_encoder", "AutoEncoder", _ENCODER),
    ),
    "vae": (("torch",), "after Prodigy: what a variational autoencoder fails to reproduce", _vae),
}  # fmt: skip
