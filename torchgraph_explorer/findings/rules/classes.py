"""Names of module classes that several rules ask for."""

from __future__ import annotations

import re
from typing import NamedTuple

RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
"""Recurrent layers that run over a whole sequence in one call."""

RECURRENT_CELLS = frozenset({"RNNCell", "LSTMCell", "GRUCell"})
"""Recurrent layers that take one step of a sequence in a call."""

RECTIFIERS = frozenset({"ReLU", "ReLU6", "Threshold"})
"""Activations whose value and gradient are zero below a threshold."""

LIBRARIES = (
    *("transformers.", "diffusers.", "timm.", "torchvision.", "torchaudio.", "open_clip.", "sentence_transformers."),
    *("vit_pytorch.", "x_transformers.", "denoising_diffusion_pytorch.", "efficientnet_pytorch.", "segment_anything."),
    *("detectron2.", "mmcls.", "mmcv.", "mmdet.", "mmpretrain.", "mmseg.", "segmentation_models_pytorch.", "monai."),
    *("asteroid.", "espnet.", "espnet2.", "fairseq.", "nemo.", "speechbrain.", "whisper.model.", "clip.model."),
    *("darts.", "neuralforecast.", "pytorch_forecasting.", "pytorch_tabnet.", "tsai.", "kan.MultKAN."),
    *("torch_geometric.", "stable_baselines3.", "tianshou."),
)
"""Beginnings of the qualified names of classes from libraries of ready-made models: users do not write these."""

_RECURRENT_PART = re.compile(r"_l(\d+)(_reverse)?$")
"""The end of the names of a recurrent module's parameters, such as `weight_hh_l0_reverse`."""


class RecurrentPart(NamedTuple):
    """A layer of a recurrent module, with its number in digits, in one of its directions."""

    layer: str
    is_backward: bool


def recurrent_part(path: str) -> RecurrentPart | None:
    """What a parameter of a module in `RECURRENT` belongs to, by its name; None if that does not tell."""
    found = _RECURRENT_PART.search(path)
    return None if found is None else RecurrentPart(found[1], found[2] is not None)
