"""One fit of `benchmarks.ranking_transformer`, as a script: `python map_fit.py METHOD SPLIT.npz FOLDER GIB`.

It imports nothing but numpy and the library of the method: LMNN's environment has no other. On standard output it says when
the fit begins, and in the end what it took; the mapped test rows are FOLDER/vectors.npy. NCA's map after each iteration is
FOLDER/map.npy, for a fit that is killed. It has so much memory: else LMNN's arrays of all pairs could take all there is.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def method_named(name: str, folder: Path, dimensions: int) -> tuple[Any, list[str]]:
    """As it comes but for the seed, and what its figures depend on."""
    if name == "lmnn":
        import metric_learn  # type: ignore[import-not-found]
        import sklearn

        versions = [f"metric-learn {metric_learn.__version__}", f"scikit-learn {sklearn.__version__}"]
        return metric_learn.LMNN(random_state=0), versions
    if name == "nca":
        import sklearn
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        def keep(found: Any, iteration: int) -> None:
            part = folder / "part.npy"
            np.save(part, found.reshape(-1, dimensions))
            part.replace(folder / "map.npy")  # a kill leaves a whole one

        return NeighborhoodComponentsAnalysis(random_state=0, callback=keep), [f"scikit-learn {sklearn.__version__}"]
    import rankshot

    return rankshot.RankingTransformer(random_state=0), [f"rankshot {rankshot.__version__}"]


def main() -> None:
    name, split, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    most = int(float(sys.argv[4]) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with np.load(split) as file:
        X, y, X_test = (file[field] for field in ("X_learn", "y_learn", "X_test"))
    method, versions = method_named(name, folder, X.shape[1])
    print("begins", flush=True)
    told: dict[str, Any] = {"versions": versions}
    start, used = time.perf_counter(), time.process_time()
    try:
        method.fit(X, y)
    except MemoryError:
        told["out_of_memory"] = True
    # Of the processor too: others may use the machine at the same time, and there is one thread
    told |= {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - used}
    if "out_of_memory" not in told:
        told["iterations"] = int(method.n_iter_)
        if name == "ours":
            told["kept_as_it_is"] = bool(method.is_identity_)
        np.save(folder / "vectors.npy", method.transform(X_test))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
