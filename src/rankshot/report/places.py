"""Where to write what was measured: of a run's own test classes under the usual names, of anything else beside that."""

from __future__ import annotations

import re
from pathlib import Path

from rankshot.data.loading import own_source, prepared, source_of
from rankshot.models.folder_files import CONFIG, EVALUATION, REPORT
from rankshot.models.shipped import has_name
from rankshot.schema import read_json
from rankshot.training import TrainConfig
from rankshot.training.sections import DataConfig

UNSAFE = re.compile(r"[^\w.+-]+")  # in the name of a file


def place_of_report(folder: Path) -> Path:
    """A run's own folder; of weights that came with the package, which is not ours to write to, one beside other runs."""
    return Path("runs") / folder.name if has_name(folder) else folder


def evaluation_path(folder: str | Path, data: str, split: str, root: str | None = None) -> Path:
    """Where the results of a run go: evaluation.json for its own test classes, else evaluation-DATA-SPLIT.json.

    It is in the run's folder; for shipped weights it is in `runs/NAME`.

    Args:
        folder: of the run.
        data: what it was measured on.
        split: of that.
        root: of the prepared data.

    Returns:
        The path.

    Examples:
        >>> from pathlib import Path
        >>> from rankshot import models, report
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-omniglot"
        >>> report.evaluation_path(folder, "omniglot", "test").as_posix()
        'runs/conv4-omniglot/evaluation.json'
        >>> report.evaluation_path(folder, "mini-imagenet", "val").as_posix()
        'runs/conv4-omniglot/evaluation-mini-imagenet-val.json'
    """
    return _path(EVALUATION, Path(folder), data, split, root)


def report_path(folder: str | Path, data: str, split: str, root: str | None = None) -> Path:
    """Where the report of a run goes: report.html for its own test classes, else report-DATA-SPLIT.html.

    It is in the run's folder; for shipped weights it is in `runs/NAME`.

    Args:
        folder: of the run.
        data: what it was measured on.
        split: of that.
        root: of the prepared data.

    Returns:
        The path.

    Examples:
        >>> from pathlib import Path
        >>> from rankshot import models, report
        >>> folder = Path(models.__file__).parent / "weights" / "conv4-omniglot"
        >>> report.report_path(folder, "omniglot", "test").as_posix()
        'runs/conv4-omniglot/report.html'
    """
    return _path(REPORT, Path(folder), data, split, root)


def is_its_own(folder: Path, data: str, split: str, root: str | None = None) -> bool:
    """Whether these are the test classes of what a run was trained on. Some networks do not tell what that was."""
    if split != "test" or "data" not in read_json(folder / CONFIG):
        return False
    return of_one_data_set(TrainConfig.from_json(folder / CONFIG).data, DataConfig(name=data, root=root))


def of_one_data_set(one: DataConfig, other: DataConfig) -> bool:
    """Whether the images are of one data set, or of the same folder of somebody's, perhaps at different times."""
    if one.name == other.name:
        return True
    sources = [source_of(config.name, config.root) for config in (one, other)]
    return sources[0] is not None and sources[0] == sources[1]


def _path(name: str, folder: Path, data: str, split: str, root: str | None) -> Path:
    place = place_of_report(folder)
    if is_its_own(folder, data, split, root):
        return place / name
    # A path is called as what was prepared of it is: folders of one name may lie in several places.
    called = prepared(data, root).name if own_source(data, root) else data
    stem, _, suffix = name.rpartition(".")
    return place / f"{stem}-{UNSAFE.sub('-', called)[:80]}-{split}.{suffix}"
