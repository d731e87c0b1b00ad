"""Embedding networks: images (B, C, H, W) in, embeddings (B, D) out.

`from_pretrained` opens one, `wrap` makes one of any `nn.Module`, `register` makes it known by a name.
"""

from .adapted import Adapted
from .conv4 import Conv4
from .conv4_strided import Conv4Strided as Conv4Strided  # registers it
from .conv4_tensorflow import Conv4TensorFlow as Conv4TensorFlow  # registers it
from .efficientnet_lite import EfficientNetLite
from .gathered_norm import gather_batch_norm
from .mirrored import Mirrored
from .network import register, wrap
from .pretrained import from_pretrained
from .resnet12 import ResNet12
from .saving import save_pretrained
from .shipped import shipped

__all__ = [
    "Adapted",
    "Conv4",
    "EfficientNetLite",
    "Mirrored",
    "ResNet12",
    "from_pretrained",
    "gather_batch_norm",
    "register",
    "save_pretrained",
    "shipped",
    "wrap",
]
