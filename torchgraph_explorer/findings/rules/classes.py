"""Classes of torch's modules that several rules ask for, by name."""

from __future__ import annotations

RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
"""Those that run over a whole sequence in one call."""

RECURRENT_CELLS = frozenset({"RNNCell", "LSTMCell", "GRUCell"})
"""Those that take one step of a sequence in a call."""

RECTIFIERS = frozenset({"ReLU", "ReLU6", "Threshold"})
"""Those that give zero, and no gradient, for what lies below a threshold."""

LIBRARIES = ("transformers.", "diffusers.", "timm.", "torchvision.", "torchaudio.", "open_clip.")
"""How the classes of models begin that nobody writes who uses them."""
