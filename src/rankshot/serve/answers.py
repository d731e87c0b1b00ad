"""What the API answers, as types: OpenAPI and the page are made by these."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Example(BaseModel):
    """A picture that was shown for a class."""

    id: str
    name: str


class Class(BaseModel):
    """A class with its examples, in the order in which they came."""

    id: str
    name: str
    examples: list[Example]


class Network(BaseModel):
    """What pictures are seen by."""

    name: str
    dimensions: int
    channels: int
    height: int
    width: int


class State(BaseModel):
    """Everything that is taught. `revision` grows with every change."""

    revision: int
    classes: list[Class]
    undo: str | None = Field(description="What undo would take back.")
    network: Network
    gallery: int | None = Field(description="How many pictures there are to search in; null: there is no gallery.")


class Changed(BaseModel):
    """After a change: its revision, and the id of what was made, if anything."""

    revision: int
    id: str | None = None
    undone: str | None = None


class Failure(BaseModel):
    """A picture that could not be read, and why."""

    name: str
    why: str


class Added(BaseModel):
    """Examples that were added, and pictures that could not be read."""

    revision: int
    ids: list[str]
    failures: list[Failure]


class ClassName(BaseModel):
    """What a class is to be called."""

    name: str = Field(max_length=1000)


class Probability(BaseModel):
    """Of one class."""

    id: str
    name: str
    probability: float


class Neighbour(BaseModel):
    """An example that decided, and its cosine with the picture."""

    example: str
    name: str
    class_id: str
    class_name: str
    similarity: float


class Answer(BaseModel):
    """What a picture is; `label` is null where it is none of these, or could not be read (`error` tells why)."""

    picture: str
    label: str | None = None
    class_id: str | None = None
    probabilities: list[Probability] = []
    neighbours: list[Neighbour] = []
    nearness: float | None = None
    error: str | None = None


class Rejection(BaseModel):
    """None of these: the threshold of the nearness, and how often it is wrong by the examples themselves."""

    threshold: float
    false_rejections: float | None
    false_acceptances: float | None


class Answers(BaseModel):
    """Of several pictures. `rejection` is null where none was asked for, or the examples cannot tell."""

    answers: list[Answer]
    rejection: Rejection | None


class Mistake(BaseModel):
    """An example that would be taken for another class, were it not there."""

    example: str
    class_id: str
    taken_for: str


class MixedUp(BaseModel):
    """Examples of one class that would be taken for another, and how many."""

    class_id: str
    taken_for: str
    count: int


class Review(BaseModel):
    """What the classifier would say of its own examples, each left out once."""

    revision: int
    mistakes: list[Mistake]
    mixed_up: list[MixedUp]


class Hit(BaseModel):
    """A picture of the gallery, and its cosine with what was asked for.

    Ids are of this server while it runs: what a gallery calls a picture by is a path of its machine.
    """

    id: str
    name: str
    similarity: float
    metadata: dict[str, Any]


class Hits(BaseModel):
    """What was found, the nearest first."""

    hits: list[Hit]


class AddedPictures(BaseModel):
    """Pictures that are in the gallery now, and such as could not be read."""

    ids: list[str]
    failures: list[Failure]


class Pair(BaseModel):
    """Two pictures that are nearly the same."""

    id: str
    name: str
    other: str
    other_name: str
    similarity: float


class Duplicates(BaseModel):
    """The most similar pairs, and how many there are."""

    pairs: list[Pair]
    count: int


class Error(BaseModel):
    """What went wrong, in one sentence."""

    error: str
