"""rankshot in pipelines, grid search and cross-validation of scikit-learn.

pip install 'rankshot[train]'
python examples/scikit_learn_pipeline.py

The images are letters that rankshot draws itself. Their pixels take the place of embeddings from another model.
"""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from rankshot import FewShotClassifier, RankingTransformer, data

Rows = tuple[np.ndarray, np.ndarray]


def letters(split: str, classes: int, images: int) -> Rows:
    """(n, 784) pixels and (n,) labels. The splits have different alphabets."""
    loaded = data.load("glyphs", split)
    chosen = np.concatenate([np.flatnonzero(loaded.labels == label)[:images] for label in range(classes)])
    return loaded.images[chosen].reshape(len(chosen), -1) / 255, loaded.labels[chosen]


def new_classes() -> None:
    """A map that is learned on some letters makes other letters rank better."""
    X, y = letters("train", classes=100, images=10)
    as_they_are = make_pipeline(PCA(128, random_state=0)).fit(X)
    mapped = make_pipeline(PCA(128, random_state=0), RankingTransformer(random_state=0)).fit(X, y)
    X_new, y_new = letters("test", classes=60, images=8)
    shown = np.arange(len(y_new)) % 8 < 3  # three examples of each letter
    for name, pipeline in {"as they are": as_they_are, "mapped": mapped}.items():
        vectors = pipeline.transform(X_new)
        classifier = FewShotClassifier(rule="prototype").fit(vectors[shown], y_new[shown])
        print(f"60 new letters, 3 examples of each, {name}: {classifier.score(vectors[~shown], y_new[~shown]):.3f} right")


def known_classes() -> None:
    """New images of known classes: the settings of a pipeline are chosen by cross-validation."""
    X, y = letters("train", classes=40, images=12)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    nearest = make_pipeline(PCA(128, random_state=0), KNeighborsClassifier(1))
    plain = cross_val_score(nearest, X, y, cv=folds)
    steps = [
        ("pca", PCA(128, random_state=0)),
        ("ranking", RankingTransformer(held_out="rows", random_state=0)),
        ("nearest", KNeighborsClassifier(1)),
    ]
    search = GridSearchCV(Pipeline(steps), {"ranking__n_components": [16, 32, 64]}, cv=folds).fit(X, y)
    print(f"40 known letters, new images: {plain.mean():.3f} right as they are, {search.best_score_:.3f} mapped")
    print(f"chosen: {search.best_params_}")


if __name__ == "__main__":
    new_classes()
    known_classes()
