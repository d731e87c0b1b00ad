"""Few-shot tasks on classes never seen: what is asked, who answers, and how well.

`evaluate` measures a network on tasks (`Classification`, `Retrieval`) over many episodes. An episode has a support set of
labelled images and queries.
"""

from .answerer import Answerer, EmbeddingAnswerer, HasRule, can_answer
from .episodes import draw_episodes
from .evaluation import Result, embed_all, evaluate, evaluate_embeddings, pixels_for, summary
from .rules import class_scores
from .tasks import Classification, Retrieval, Task, tasks_for

__all__ = [
    "Answerer",
    "Classification",
    "EmbeddingAnswerer",
    "HasRule",
    "Result",
    "Retrieval",
    "Task",
    "can_answer",
    "class_scores",
    "draw_episodes",
    "embed_all",
    "evaluate",
    "evaluate_embeddings",
    "pixels_for",
    "summary",
    "tasks_for",
]
