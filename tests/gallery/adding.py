"""Adds to a gallery without end, and tells what was acknowledged. Made to be killed."""

import numpy as np

from rankshot.gallery.local import LocalStore


def vectors_of(start, count):
    return np.random.default_rng(start).normal(size=(count, 8)).astype(np.float32)


def made(folder, *parts):
    """A gallery with images of several additions: (first number, count) each."""
    store = LocalStore.create(folder, 8, {"embedder": 1})
    for number, count in parts:
        store.add(vectors_of(number, count), [f"i{number + k}" for k in range(count)], [{"from": number}] * count)
    return store


def add_without_end(folder):
    store = LocalStore(folder)
    number, turn = len(store), 0
    while True:
        turn += 1
        count = turn % 7 + 1 if turn % 5 else 5000  # several blocks now and then
        store.add(vectors_of(number, count), [f"i{number + k}" for k in range(count)], [{"from": number}] * count)
        print(number, count, flush=True)
        number += count
