"""One network's rankings, judged by every metric: which objective is best for which."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rankshot import ranking
from rankshot.data import ImageSet
from rankshot.fewshot import Result, Retrieval, draw_episodes, embed_all

EPISODES = 1000
AT_ONCE = 100  # episodes


@torch.no_grad()
def by_each_metric(
    model: nn.Module, images: ImageSet, task: Retrieval, metrics: Sequence[str], seed: int, episodes: int = EPISODES
) -> dict[str, dict[str, float]]:
    """metric -> mean and interval over the episodes, batch norm by running statistics. AP's is the mAP of `evaluate`."""
    vectors, labels = embed_all(model, images), torch.from_numpy(images.labels)
    relevance, valid = ranking.relevance_of(torch.arange(task.way).repeat_interleave(task.per_class))
    found: dict[str, list[Tensor]] = {metric: [] for metric in metrics}
    for drawn in torch.split(draw_episodes(labels, task, episodes, seed).flatten(1), AT_ONCE):
        pool = vectors[drawn.to(vectors.device)]
        scores = (pool @ pool.mT).flatten(0, 1)
        masks = [mask.to(scores.device).repeat(len(pool), 1) for mask in (relevance, valid)]
        for metric, values in found.items():
            values.append(ranking.evaluate(metric, scores, *masks).view(len(pool), -1).mean(-1).cpu())
    results = {metric: Result(task, torch.cat(values)) for metric, values in found.items()}
    return {metric: {"mean": result.mean, "interval": result.interval} for metric, result in results.items()}
