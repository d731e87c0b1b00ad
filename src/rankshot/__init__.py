"""Few-shot learning by ranking: losses that optimise average precision and its like, exactly.

- `losses`: what a training loop calls, loss(embeddings, labels) -> scalar; `RankingLoss` first of all.
- `ranking`: metrics and rankings of scores (Q, G) and relevance (Q, G).
- `models`: embedding networks, shipped weights, `from_pretrained` and `save_pretrained`.
- `data`: data sets by name or folder, and batches of them.
- `fewshot`: tasks, episodes, and evaluation with confidence intervals.
- `methods`: few-shot systems to train by, besides the losses.
- `training`: `train`, its config, and callbacks.
- `adaptation`: `RankingTransformer`, for embeddings that are there already.
- `gallery`: `FewShotClassifier`, `Gallery` and `Embedder`, for people's own images.
- `report`: runs measured side by side, as tables and as a page.

`help()` of every name in there has an example that runs.
"""

from .version import __version__

TYPE_CHECKING = False  # of `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from . import adaptation, data, fewshot, gallery, losses, methods, models, ranking, report, training
    from .adaptation import RankingTransformer
    from .gallery import Embedder, FewShotClassifier, Gallery
    from .models import from_pretrained, save_pretrained, wrap
    from .preprocess import Preprocess
    from .registry import load_files
    from .training import TrainConfig, config_for, train

__all__ = [
    "Embedder",
    "FewShotClassifier",
    "Gallery",
    "Preprocess",
    "RankingTransformer",
    "TrainConfig",
    "__version__",
    "adaptation",
    "config_for",
    "data",
    "fewshot",
    "from_pretrained",
    "gallery",
    "load_files",
    "losses",
    "methods",
    "models",
    "ranking",
    "report",
    "save_pretrained",
    "train",
    "training",
    "wrap",
]
_PARTS = ("adaptation", "data", "fewshot", "gallery", "losses", "methods", "models", "ranking", "report", "training")
_WITHIN = {
    "Embedder": "gallery",
    "FewShotClassifier": "gallery",
    "Gallery": "gallery",
    "Preprocess": "preprocess",
    "RankingTransformer": "adaptation",
    "TrainConfig": "training",
    "config_for": "training",
    "from_pretrained": "models",
    "load_files": "registry",
    "save_pretrained": "models",
    "train": "training",
    "wrap": "models",
}


def __getattr__(name: str) -> "Any":
    """Imported when it is asked for: torch takes seconds, in which the command line wants to hear Ctrl-C already."""
    from importlib import import_module

    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name in _WITHIN:
        return getattr(import_module(f"{__name__}.{_WITHIN[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is for its users."""
    return sorted(__all__)
