"""Embeddings that are there already, from any model: a small map on top that ranks better.

`RankingTransformer` learns the map, `ranked` measures how well vectors rank one another.
"""

from .measuring import Ranked, ranked
from .transformer import RankingTransformer

__all__ = ["Ranked", "RankingTransformer", "ranked"]
