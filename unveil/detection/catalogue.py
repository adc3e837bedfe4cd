"""DETECTORS, the list of all detectors; one line each."""

from __future__ import annotations

from unveil.detection.detectors.isolation_forest import ISOLATION_FOREST
from unveil.detection.detectors.mahalanobis import MAHALANOBIS
from unveil.detection.detectors.pca import PCA
from unveil.detection.detectors.shift import SHIFT
from unveil.detection.detectors.zscore import ZSCORE

DETECTORS = (
    ZSCORE,
    MAHALANOBIS,
    ISOLATION_FOREST,
    SHIFT,
    PCA,
)
