"""The API: `/api/v1`, typed, errors as JSON with one sentence."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, TypeVar

from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from rankshot.data.decoding import Undecodable
from rankshot.data.headers import look
from rankshot.gallery.gallery import Gallery
from rankshot.gallery.rejection import Rejection
from rankshot.gallery.store import NotAnswering
from rankshot.version import __version__

from . import answers
from .described import A_PICTURE, A_ZIP, PICTURES, ZIP
from .recogniser import Answer, Recogniser
from .search import Size, add_search
from .taking_along import classifier_in, take_in, zipped
from .together import Together
from .turns import Turns
from .uploads import seen_by, uploads_in
from .views import AT_ONCE, SMALL, answer, drawn
from .workspace import Conflict, Picture, Refused, Unknown, Workspace

log = logging.getLogger(__name__)
LONGEST_WAIT = 25  # seconds, for a change
SHOWN_BY_BROWSERS = {"PNG", "JPEG", "GIF", "BMP", "WEBP"}
GONE = "(deleted)"  # the name of what was there when a picture was looked at
FOREVER = {"content-disposition": "inline", "cache-control": "private, max-age=31536000, immutable"}
T = TypeVar("T")
Reject = Annotated[
    float | None,
    Query(ge=0, lt=1, description="The share of known pictures that may be answered with none of these, such as 0.05."),
]


def application(workspace: Workspace, together: Together, gallery: Gallery | None = None) -> FastAPI:
    """All of it, over one workspace and one network; with a gallery, search too."""
    recogniser, changed, drawing = Recogniser(workspace, together), Bell(), Turns(AT_ONCE)
    size = None if gallery is None else Size(gallery)
    app = FastAPI(
        title="rankshot",
        version=__version__,
        description="Classes from a few pictures each, and none of these.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={status: {"model": answers.Error} for status in (400, 404, 409, 422)},
    )
    app.state.changed = changed  # who stops the server wakes those that wait
    errors_as_json(app)

    async def change(act: Callable[[], T]) -> tuple[T, int]:
        """Something that changes the workspace, and the revision then; who waits for a change is told."""

        def alone() -> tuple[T, int]:
            with workspace.alone():
                return act(), workspace.revision

        done = await run_in_threadpool(alone)
        changed.ring()
        return done

    @app.get("/api/v1/state")
    async def state() -> answers.State:
        """Classes, their examples, and the revision that they are of."""
        return await run_in_threadpool(state_of, workspace, together, size)

    @app.get("/api/v1/changes")
    async def changes(request: Request, since: int = -1) -> answers.State:
        """The state as soon as its revision is another than `since`, or after some seconds."""
        bell = changed.now()  # before the revision is read: what changes in between rings it
        if await run_in_threadpool(lambda: workspace.revision) == since:
            for _ in range(LONGEST_WAIT):
                with suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), 1)
                if bell.is_set() or await request.is_disconnected():
                    break
        return await run_in_threadpool(state_of, workspace, together, size)

    @app.post("/api/v1/classes", status_code=201)
    async def add_class(given: answers.ClassName) -> answers.Changed:
        """Make a class, without examples yet."""
        id, revision = await change(lambda: workspace.add_class(given.name))
        return answers.Changed(revision=revision, id=id)

    @app.patch("/api/v1/classes/{class_id}")
    async def rename_class(class_id: str, given: answers.ClassName) -> answers.Changed:
        """Call a class by another name."""
        _, revision = await change(lambda: workspace.rename_class(class_id, given.name))
        return answers.Changed(revision=revision, id=class_id)

    @app.delete("/api/v1/classes/{class_id}")
    async def remove_class(class_id: str) -> answers.Changed:
        """Remove a class with all its examples."""
        _, revision = await change(lambda: workspace.remove_class(class_id))
        return answers.Changed(revision=revision)

    @app.post("/api/v1/classes/{class_id}/examples", status_code=201, openapi_extra=PICTURES)
    async def add_examples(class_id: str, request: Request) -> answers.Added:
        """Show a class pictures, each in a field `pictures`. Those that cannot be read are told."""
        uploads = await uploads_in(request)
        good, failures = await together.in_turn(lambda: seen_by(together, uploads))
        pictures = [Picture(each.content, each.name, vector) for each, vector in good]
        ids, revision = await change(lambda: workspace.add_examples(class_id, pictures))
        return answers.Added(revision=revision, ids=ids, failures=failures)

    @app.delete("/api/v1/examples/{example_id}")
    async def remove_example(example_id: str) -> answers.Changed:
        """Remove one example."""
        _, revision = await change(lambda: workspace.remove_example(example_id))
        return answers.Changed(revision=revision)

    @app.get("/api/v1/examples/{example_id}/picture", response_class=Response, responses=A_PICTURE)
    async def picture(example_id: str) -> Response:
        """The file of an example, as it came."""
        content = await run_in_threadpool(workspace.picture, example_id)
        return Response(content, media_type=media_type(content), headers=FOREVER)

    @app.get("/api/v1/examples/{example_id}/thumbnail", response_class=Response, responses=A_PICTURE)
    async def thumbnail(example_id: str) -> Response:
        """A small view of an example, upright: a JPEG of up to 256 pixels a side."""
        small = await drawing(lambda: drawn(workspace.picture(example_id), SMALL))
        return answer(small, FOREVER["cache-control"])

    @app.post("/api/v1/undo")
    async def undo() -> answers.Changed:
        """Take the last change back."""
        what, revision = await change(workspace.undo)
        return answers.Changed(revision=revision, undone=what)

    @app.get("/api/v1/review")
    async def review() -> answers.Review:
        """Examples that would be taken for another class, each left out once."""
        found = await run_in_threadpool(recogniser.review)
        return answers.Review(
            revision=found.revision,
            mistakes=[answers.Mistake(example=e, class_id=c, taken_for=t) for e, c, t in found.mistakes],
            mixed_up=[answers.MixedUp(class_id=c, taken_for=t, count=n) for c, t, n in found.mixed_up],
        )

    @app.get("/api/v1/rejection")
    async def rejection(reject: Reject = 0.05) -> answers.Rejection | None:
        """What being so careful costs, by the examples; null where they cannot tell."""
        return cost_of(await run_in_threadpool(recogniser.rejection, reject))

    @app.post("/api/v1/classify", openapi_extra=PICTURES)
    async def classify(request: Request, reject: Reject = None) -> answers.Answers:
        """What pictures are, each in a field `pictures`: probabilities, and the examples that decided."""
        uploads = await uploads_in(request)

        def act() -> answers.Answers:
            recogniser.classifier()  # complains before anything is embedded
            seen = together([upload.content for upload in uploads])
            good = [each for each in seen if not isinstance(each, Undecodable)]
            answered, rejection = recogniser.answers(good, reject)
            found = iter(answered)
            names = names_in(workspace)  # last: whatever was answered has its name here, unless it is gone by now
            given = [
                answers.Answer(picture=upload.name, error=str(vector))
                if isinstance(vector, Undecodable)
                else answer_of(upload.name, next(found), names)
                for upload, vector in zip(uploads, seen, strict=True)
            ]
            return answers.Answers(answers=given, rejection=cost_of(rejection))

        return await together.in_turn(act)

    @app.get("/api/v1/classifier.zip", response_class=Response, responses=A_ZIP)
    async def download() -> Response:
        """What was taught, as the folder that `FewShotClassifier.from_pretrained` reads."""
        content = await run_in_threadpool(zipped, workspace, together)
        headers = {"content-disposition": 'attachment; filename="classifier.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    @app.post("/api/v1/classifier.zip", status_code=201, openapi_extra=ZIP)
    async def upload(request: Request) -> answers.Changed:
        """Take in what was taught elsewhere: the zip that was downloaded there, as the body. Its classes are added."""
        content = await request.body()
        classifier = await run_in_threadpool(classifier_in, content)
        _, revision = await change(lambda: take_in(workspace, together, classifier))
        return answers.Changed(revision=revision)

    if gallery is not None:
        add_search(app, gallery, together, drawing, workspace.folder / "pictures")
    return app


class Bell:
    """Wakes all who wait, once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def now(self) -> asyncio.Event:
        """What the next ring sets."""
        return self._event


def media_type(content: bytes) -> str:
    """Of a picture that was decoded before; what no browser shows is only bytes."""
    kind = look(content).kind
    return f"image/{kind.lower()}" if kind in SHOWN_BY_BROWSERS else "application/octet-stream"


def state_of(workspace: Workspace, together: Together, size: Size | None) -> answers.State:
    revision, classes = workspace.classes()
    preprocess = together.embedder.preprocess
    network = answers.Network(
        name=together.embedder.name.rpartition("/")[2],
        dimensions=together.embedder.dimensions,
        channels=preprocess.channels,
        height=preprocess.height,
        width=preprocess.width,
    )
    shown = [
        answers.Class(id=id, name=name, examples=[answers.Example(id=each, name=called) for each, called in examples])
        for id, name, examples in classes
    ]
    return answers.State(
        revision=revision,
        classes=shown,
        undo=workspace.last_change(),
        network=network,
        gallery=None if size is None else size(),
    )


def names_in(workspace: Workspace) -> dict[str, str]:
    """Of all classes and examples, by their ids."""
    _, classes = workspace.classes()
    return {each.id: each.name for each in classes} | dict(example for each in classes for example in each.examples)


def answer_of(picture: str, found: Answer, names: Mapping[str, str]) -> answers.Answer:
    return answers.Answer(
        picture=picture,
        label=None if found.class_id is None else names.get(found.class_id, GONE),
        class_id=found.class_id,
        probabilities=[
            answers.Probability(id=id, name=names.get(id, GONE), probability=share) for id, share in found.probabilities
        ],
        neighbours=[
            answers.Neighbour(
                example=each.name,
                name=names.get(each.name, GONE),
                class_id=str(each.label),
                class_name=names.get(str(each.label), GONE),
                similarity=each.similarity,
            )
            for each in found.neighbours
        ],
        nearness=found.nearness,
    )


def cost_of(rejection: Rejection | None) -> answers.Rejection | None:
    if rejection is None:
        return None
    rejected, accepted = (None if math.isnan(each) else each for each in rejection[1:])
    return answers.Rejection(threshold=rejection.threshold, false_rejections=rejected, false_acceptances=accepted)


def errors_as_json(app: FastAPI) -> None:
    """One sentence each; nothing of this machine in them."""

    def told(status: int, error: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": error}, status, headers)

    @app.exception_handler(Unknown)
    async def unknown(request: Request, error: Unknown) -> JSONResponse:
        return told(404, str(error))

    @app.exception_handler(Conflict)
    async def conflict(request: Request, error: Conflict) -> JSONResponse:
        return told(409, str(error))

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return told(400, str(error))

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return told(422, f"{'.'.join(map(str, first['loc'][1:])) or 'the request'}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        return told(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(NotAnswering)
    async def away(request: Request, error: NotAnswering) -> JSONResponse:
        log.error("%s", error)
        return told(503, "the gallery does not answer: the server's log tells why", {"Retry-After": "10"})

    @app.exception_handler(Exception)
    async def of_ours(request: Request, error: Exception) -> JSONResponse:
        log.exception("a request could not be answered")
        return told(500, "something went wrong here: the server's log tells what")
