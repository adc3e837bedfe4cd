"""The training child: ``python -m unveil.engine.training_child SET MODEL [SEED]``. Fits, writes the model, ends.

A process of its own because scikit-learn costs more memory than the whole watcher, and gives none of it back.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from unveil.errors import UnreadableError


def main(argv: list[str] | None = None) -> int:
    """Fit the models of a training set; the exit code says whether it went well, one line on stderr why not."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # before numpy is loaded: one core, and that one last of all
    os.nice(19)
    from unveil.detection.model import training_set
    from unveil.detection.training import fit
    from unveil.engine.model_files import load_arrays, save_arrays
    from unveil.errors import UnveilError

    source, target, *seed = sys.argv[1:] if argv is None else argv
    try:
        arrays = load_arrays(Path(source))
        if arrays is None:
            raise UnreadableError(f"no training set at {source}")
        model = fit(training_set(arrays), seed=int(seed[0]) if seed else 0)
        save_arrays(Path(target), model.arrays())
    except UnveilError as error:
        print(error.what, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
