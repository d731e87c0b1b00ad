"""The figures of the paper, as printed: of its own methods, and of those that it compares them with."""

from __future__ import annotations

COLUMNS = {
    "omniglot": (
        "1-shot 5-way",
        "1-shot 20-way",
        "5-shot 5-way",
        "5-shot 20-way",
        "retrieval 5-way",
        "retrieval 20-way",
    ),
    "mini-imagenet": ("1-shot 5-way", "5-shot 5-way", "retrieval 5-way", "retrieval 20-way"),
    "cub": ("1-shot 5-way", "1-shot 20-way", "retrieval 20-way"),
}
PUBLISHED: dict[str, dict[str, tuple[float | None, ...]]] = {
    "omniglot": {
        "map-dlm": (98.8, 95.4, 99.6, 98.6, 98.7, 95.8),
        "map-ssvm": (98.6, 95.2, 99.6, 98.6, 98.6, 95.7),
        "siamese": (98.8, 95.5, None, None, 98.6, 95.7),
        "matching": (98.1, 93.8, 98.9, 98.5, None, None),
        "prototypical": (98.8, 96.0, 99.7, 98.9, None, None),
        "maml": (98.7, 95.8, 99.9, 98.9, None, None),
        "memory": (98.4, 95.0, 99.6, 98.6, None, None),
    },
    "mini-imagenet": {
        "map-dlm": (50.28, 63.70, 52.96, 23.68),
        "map-ssvm": (50.32, 63.94, 52.85, 23.87),
        "siamese": (48.42, None, 51.24, 22.66),
        "nearest": (41.08, 51.04, None, None),
        "matching": (43.40, 51.09, None, None),
        "matching-fce": (43.56, 55.31, None, None),
        "prototypical": (49.42, 68.20, None, None),
        "maml": (48.70, 63.11, None, None),
        "meta-lstm": (43.44, 60.60, None, None),
    },
    "cub": {
        "map-dlm": (59.1, 30.6, 30.4),
        "map-ssvm": (59.0, 30.8, 30.3),
        "siamese": (56.7, 27.9, 27.9),
    },
}
ALPHA_ONE: dict[str, tuple[float, ...]] = {  # mini-ImageNet, table of the supplementary
    "map-dlm": (41.64, 50.40, 45.21, 17.30),
    "map-ssvm": (47.89, 60.82, 52.07, 22.25),
}
DIGITS = {"omniglot": 1, "mini-imagenet": 2, "cub": 1}
DATA_NAMES = {"omniglot": "Omniglot", "mini-imagenet": "mini-ImageNet", "cub": "CUB"}
TITLES = {  # of all methods, in the order of the tables
    "map-dlm": "mAP-DLM",
    "map-ssvm": "mAP-SSVM",
    "siamese": "siamese",
    "nearest": "nearest neighbours",
    "matching": "Matching Networks",
    "matching-fce": "Matching Networks, FCE",
    "prototypical": "Prototypical Networks",
    "maml": "MAML",
    "meta-lstm": "Meta-Learner LSTM",
    "memory": "ConvNet with memory",
    "arc": "Attentive Recurrent Comparators",
    "nca": "NCA",
    "lmnn": "LMNN",
    "triplet": "triplets, semi-hard",
    "smooth-ap": "Smooth-AP",
    "fast-ap": "FastAP",
    "supcon": "supervised contrastive",
    "baseline++": "Baseline++",
}
