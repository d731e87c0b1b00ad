"""The figures of the paper, as printed: of its own methods, and of the siamese network that it compares them with."""

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
    },
    "mini-imagenet": {
        "map-dlm": (50.28, 63.70, 52.96, 23.68),
        "map-ssvm": (50.32, 63.94, 52.85, 23.87),
        "siamese": (48.42, None, 51.24, 22.66),
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
NAMES = {
    "omniglot": "Omniglot",
    "mini-imagenet": "mini-ImageNet",
    "cub": "CUB",
    "map-dlm": "mAP-DLM",
    "map-ssvm": "mAP-SSVM",
    "siamese": "siamese",
    "smooth-ap": "Smooth-AP",
}
