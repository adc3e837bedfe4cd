"""Other people's detectors behind our interface; what is not installed is left out, with the reason."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from unveil.engine.peers import peers

FOUND, ABSENT = peers()
NAMES = {"ecod", "copod", "hbos", "lof", "autoencoder", "vae"}


def test_each_peer_is_here_or_absent_with_a_reason() -> None:
    assert {kind.name for kind in FOUND} | set(ABSENT) == NAMES
    assert not {kind.name for kind in FOUND} & set(ABSENT)
    assert all("not installed" in reason for reason in ABSENT.values())
    assert ("vae" in ABSENT) is (find_spec("torch") is None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("kind", FOUND, ids=[kind.name for kind in FOUND])
def test_a_peer_behaves_like_a_detector(kind) -> None:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(0)
    z = random.normal(size=(120, 3)) @ random.normal(size=(3, 12)) + random.normal(size=(120, 12)) * 0.5
    z[:, 5] = 0.0
    strange = z[0].copy()
    strange[::2] = 9.0
    detector = kind.restore(kind.fit(z, None, 0))
    assert detector.score(strange).score > np.median([detector.score(row).score for row in z])
    for window in (strange, np.full(12, np.nan), np.full(12, 1e18), np.zeros(12)):
        answer = detector.score(window)
        assert np.isfinite(answer.score)
        assert (answer.contributions == np.zeros(12)).all()
    again = kind.restore(kind.fit(z, None, 0))
    assert again.score(strange).score == pytest.approx(detector.score(strange).score)
