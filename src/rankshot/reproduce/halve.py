"""`python -m rankshot.reproduce.halve RUN`, for maintainers: the weights of a run in half precision, in half of the bytes.

To be done before the network is measured: what is shipped is then what was measured.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from rankshot.models.folder_files import CLASS_MEANS, EVALUATION, ONE_SHOT, REPORT, WEIGHTS
from rankshot.tensors import read_notes, read_tensors, write_tensors

OF_OTHER_WEIGHTS = (CLASS_MEANS, EVALUATION, REPORT, ONE_SHOT)


def halve(run: Path) -> int:
    """Round all weights in place, and forget what was measured of the old ones; the number of bytes that are left.

    `from_pretrained` reads them into a network that computes in float32, as it reads any others.
    """
    path = run / WEIGHTS
    tensors = halved(read_tensors(path))
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{path}: {name!r} has values that half precision cannot hold")
    write_tensors(path, tensors, read_notes(path))
    for name in OF_OTHER_WEIGHTS:
        (run / name).unlink(missing_ok=True)
    return path.stat().st_size


def halved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.half() if x.is_floating_point() else x for name, x in tensors.items()}


if __name__ == "__main__":
    print(f"{halve(Path(sys.argv[1])):,} bytes")
