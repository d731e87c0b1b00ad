"""Few-shot tasks on classes never seen: what is asked, how episodes are drawn, how a class is decided."""

from .episodes import draw_episodes
from .rules import class_scores
from .tasks import Classification, Retrieval, Task

__all__ = ["Classification", "Retrieval", "Task", "class_scores", "draw_episodes"]
