"""An embedding network with a map of vectors behind it."""

from __future__ import annotations

from torch import Tensor, nn

from .headed import unit
from .network import build_around, preprocess_of, register
from .vector_map import VectorMap


@register("adapted", summary="an embedding network, and a map of its unit vectors")
class Adapted(nn.Module):
    """An embedding network with a map of its unit vectors behind it: what `RankingTransformer.behind` makes.

    Args:
        embedder: the network.
        components: how many dimensions the map gives.
        hidden: width of the map's hidden layer. None: the map is linear.

    Examples:
        A linear map that swaps the two dimensions of an embedding:

        >>> import torch
        >>> import rankshot
        >>> from rankshot.models import Adapted
        >>> network = rankshot.wrap(torch.nn.Flatten(), preprocess=rankshot.Preprocess(1, 1, 2))
        >>> adapted = Adapted(network, components=2)
        >>> adapted.map.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> adapted(torch.tensor([[[[3.0, 4.0]]]])).detach()  # (3, 4) / 5, swapped
        tensor([[0.8000, 0.6000]])
    """

    def __init__(self, embedder: nn.Module, components: int = 64, hidden: int | None = None) -> None:
        super().__init__()
        self.embedder = embedder
        self.map = VectorMap(int(embedder.embedding_dim), components, hidden)  # type: ignore[arg-type]
        self.embedding_dim = components

    @property
    def wrapped_network(self) -> nn.Module:
        """The embedding network within."""
        return self.embedder

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W) -> embeddings (B, components)."""
        embeddings: Tensor = self.map(unit(self.embedder(images)))
        return embeddings


def adapted(network: nn.Module, vector_map: VectorMap) -> nn.Module:
    """A network with this map behind it, ready to embed; the map is copied."""
    preprocess_of(network)  # complains of a network that does not tell what pictures it takes
    components, dimensions = vector_map.weight.shape
    if dimensions != network.embedding_dim:
        raise ValueError(f"the map takes {dimensions} dimensions, and the network gives {network.embedding_dim}")
    settings = {"components": components} | ({} if vector_map.hidden is None else {"hidden": vector_map.hidden})
    made = build_around(network, "adapted", **settings)
    made.map.load_state_dict(vector_map.state_dict())  # type: ignore[union-attr]
    like = next(network.parameters(), None)
    return (made if like is None else made.to(like)).eval()
