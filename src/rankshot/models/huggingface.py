"""Any vision model of Hugging Face transformers (extra `transformers`) as an embedding network.

It is made from its config, a JSON text among its settings, and so needs neither the hub nor the folder that it came from.
That text may lie in a folder from elsewhere: nothing in it names code, a file or a place on the network (`plain`).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from rankshot.preprocess import Number, Preprocess, Spread
from rankshot.schema import Length, parsed

from .network import register

PIXELS = "pixel_values"
LARGEST, MOST_LAYERS = 2**14, 1000  # numbers in a config: how wide, and how deep
DEEP = re.compile("layer|depth|block|stage|repeat")
# What a config may tell and a network does not need. Some of it would load code, or weights, from elsewhere.
NOT_NEEDED = frozenset(
    """architectures attn_implementation auto_map chunk_size_feed_forward dtype experts_implementation fusion_config
    id2label is_encoder_decoder label2id name_or_path num_labels output_attentions output_hidden_states problem_type
    quantization_config return_dict torch_dtype torchscript transformers_version transformers_weights
    use_return_dict""".split()
)
CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")
BACKBONES = ("backbone", "backbone_config", "use_timm_backbone")


@register("huggingface", summary="A vision model of Hugging Face transformers: --init hf:NAME or hf:FOLDER")
class HuggingFace(nn.Module):
    """A vision model of transformers. Its embedding is, the first of these that there is:

    - what the model itself pools, if it does so without a dense layer: ResNet, ConvNeXt, Swin, DINOv2, CLIP, SigLIP;
    - the mean over all places of an output (B, C, H, W);
    - the class token of the last layer: ViT, DeiT;
    - the mean of all tokens of the last layer.

    A dense layer behind the class token, as ViT has it, is taken out: in most checkpoints its weights are random.

    Args:
        transformers_config: the config of the model, as JSON.
        channel_mean: of each channel of the pictures, from 0 to 1: taken off before the model sees them. Empty: 0.
        channel_deviation: of each channel: what they are divided by then. Empty: 1.
        blue_first: whether the model wants blue, green and red in this order.
    """

    mean: Tensor
    deviation: Tensor

    # Mean and deviation are settings, not of `preprocess`: a run that begins with such weights is built again from its
    # settings and its own images, which have none.
    def __init__(
        self,
        preprocess: Preprocess,
        transformers_config: Annotated[str, Length(2**16)] = "",
        channel_mean: tuple[Number, ...] = (),
        channel_deviation: tuple[Spread, ...] = (),
        blue_first: bool = False,
    ) -> None:
        super().__init__()
        if not transformers_config:
            raise ValueError("its weights tell what it is: --init hf:NAME or hf:FOLDER, without --network")
        for name, numbers in (("channel_mean", channel_mean), ("channel_deviation", channel_deviation)):
            if len(numbers) not in (0, preprocess.channels):
                raise ValueError(f"{name} must have a number for each of {preprocess.channels} channels, or none")
        with quietly():
            config = config_of(parsed(transformers_config, dict[str, Any], "transformers_config"))
            self.model = without_dense_pooler(vision_class(config)(config))
        takes = getattr(config, "num_channels", preprocess.channels)
        if takes != preprocess.channels:
            raise ValueError(f"the model takes images of {takes} channels, got {preprocess.channels}")
        names = {name.rpartition(".")[2] for name, _ in self.model.named_parameters()}
        self.has_class_token = not names.isdisjoint(CLASS_TOKENS)
        self.options: dict[str, Any] = {}
        if not _has_size(config, preprocess) and _takes(self.model.forward, "interpolate_pos_encoding"):
            self.options = {"interpolate_pos_encoding": True}
        self.blue_first = blue_first
        # Not among the weights: they are told by the settings.
        mean, deviation = channel_mean or (0.0,), channel_deviation or (1.0,)
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation).view(-1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) from 0 to 1 -> (B, D)."""
        values = images.flip(1) if self.blue_first else images
        values = (values - self.mean.to(images.dtype)) / self.deviation.to(images.dtype)
        output = self.model(**{PIXELS: values}, **self.options)
        pooled: Tensor | None = getattr(output, "pooler_output", None)
        if pooled is not None:
            return pooled.mean((2, 3)) if pooled.dim() == 4 else pooled
        last: Tensor = output.last_hidden_state
        if last.dim() == 4:
            return last.mean((2, 3))
        return last[:, 0] if self.has_class_token else last.mean(1)


def check_installed(what: str) -> None:
    """Whether transformers is there; it is not imported, which takes seconds."""
    if importlib.util.find_spec("transformers") is None:
        raise ImportError(f"{what} needs transformers, which is not here: pip install 'rankshot[transformers]'")


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A config, or one within another, with what the architecture depends on and nothing else."""
    return {
        name: plain(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if not (name.startswith("_") or name.endswith("_token_id") or name in NOT_NEEDED)
    }


def config_of(settings: Mapping[str, Any]) -> Any:
    """The config of a vision model, or of the vision side of one that has several, as an object of transformers."""
    check_installed("a network 'huggingface'")
    from transformers import CONFIG_MAPPING, __version__

    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise ValueError(f"transformers {__version__} knows no model_type {kind!r:.60}")
    made = CONFIG_MAPPING[kind]
    if isinstance(vision := settings.get("vision_config"), Mapping):
        side = dict(getattr(made, "sub_configs", {})).get("vision_config")
        if not getattr(side, "model_type", None):  # any kind, which the config tells
            kind = vision.get("model_type")
            side = CONFIG_MAPPING[kind] if isinstance(kind, str) and kind in CONFIG_MAPPING else None
        if side is None or side.model_type not in CONFIG_MAPPING:
            raise ValueError(f"the vision side of a {settings['model_type']!r} cannot be had by itself")
        made, settings = side, {**vision, "model_type": side.model_type}
    _class_of(made)  # complains first of a model for something else
    settings = plain(settings)
    _check_numbers(settings)
    try:
        config = made.from_dict(settings)
    except Exception as error:  # checks of many kinds, of the library's own
        raise ValueError(f"this is no config of a {made.model_type!r}: {first_line(error)}") from None
    if any(getattr(config, name, None) for name in BACKBONES):
        raise ValueError(f"this {made.model_type!r} is built around another network, its backbone: use that one")
    return config


def as_text(config: Any) -> str:
    """A config as `transformers_config` has it: all that it tells, since what is usual changes between versions."""
    return json.dumps(plain(config.to_dict()), sort_keys=True)


def vision_class(config: Any) -> Any:
    """The class of transformers that is made from a config."""
    return _class_of(type(config))


def _class_of(config_class: Any) -> Any:
    from transformers import MODEL_MAPPING

    found = MODEL_MAPPING.get(config_class, None)
    if found is None:  # the vision side of some models is known within their own module alone
        module = importlib.import_module(config_class.__module__.replace(".configuration_", ".modeling_"))
        models = (model for name, model in vars(module).items() if name.endswith("VisionModel"))
        found = next((model for model in models if getattr(model, "config_class", None) is config_class), None)
    found = found[0] if isinstance(found, tuple) else found
    if getattr(found, "main_input_name", None) != PIXELS:
        raise ValueError(f"a {config_class.model_type!r} takes no pictures")
    return found


def without_dense_pooler(model: nn.Module) -> nn.Module:
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and any(isinstance(layer, nn.Linear) for layer in pooler.modules()):
        model.pooler = None  # type: ignore[assignment]
    return model


@contextmanager
def quietly() -> Iterator[None]:
    """transformers talks about weights that are there or not, and counts them."""
    check_installed("a network 'huggingface'")
    from transformers.utils import logging

    level, shows_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except ImportError as error:  # of a model that needs a package more
        raise ImportError(f"this model needs a package that is not here: {first_line(error)}") from None
    finally:
        logging.set_verbosity(level)
        if shows_bars:
            logging.enable_progress_bar()


def _check_numbers(value: Any, name: str = "config") -> None:
    """A model of a million layers would take all memory, before any weight is missed."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_numbers(item, key)
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item, name)
    elif isinstance(value, (int, float)) and abs(value) > (most := MOST_LAYERS if DEEP.search(name) else LARGEST):
        raise ValueError(f"{name:.60} of the model must be at most {most:,}, got {value:.6g}")


def _has_size(config: Any, preprocess: Preprocess) -> bool:
    """Whether the model was made for pictures of this size."""
    size = getattr(config, "image_size", None)
    return tuple(size) == preprocess.shape[1:] if isinstance(size, (list, tuple)) else {size} == {*preprocess.shape[1:]}


def _takes(function: Any, argument: str) -> bool:
    return argument in inspect.signature(function).parameters


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
