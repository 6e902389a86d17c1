"""Models of Keras 3, whose layers torch's walk does not find."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, capture, watch
from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("keras"),  # one process imports it, which takes seconds
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),  # of numpy, for Keras
]


@pytest.fixture
def keras() -> Iterator[Any]:
    os.environ["KERAS_BACKEND"] = "torch"
    loaded = pytest.importorskip("keras", reason="Keras 3.15 needs Python 3.11")
    loaded.utils.clear_session()  # its layers are numbered
    loaded.utils.set_random_seed(0)
    yield loaded
    loaded.utils.clear_session()


def network(keras: Any) -> Any:
    images = keras.Input((8, 8, 1))
    hidden = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(images)
    hidden = keras.layers.BatchNormalization()(hidden)
    sequence = keras.layers.Reshape((64, 8))(hidden)
    sequence = keras.layers.Add()([keras.layers.MultiHeadAttention(2, 4)(sequence, sequence), sequence])
    head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dropout(0.2), keras.layers.Dense(10)]
    model = keras.Model(images, keras.Sequential(head, name="head")(sequence))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss, metrics=["accuracy"])
    return model


def fit(keras: Any, model: Any) -> dict[str, list[float]]:
    keras.utils.set_random_seed(1)
    data = torch.randn(24, 8, 8, 1).numpy(), torch.randint(10, (24,)).numpy()
    found: dict[str, list[float]] = model.fit(*data, batch_size=8, epochs=2, verbose=0, validation_data=data).history
    return found


def test_layers_have_the_names_of_their_attributes_or_their_own(keras: Any) -> None:
    class Tower(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = keras.layers.Dense(3)
            self.blocks = [keras.layers.Dense(3, name="block"), keras.layers.Dense(3, name="block")]
            self.plain = nn.Linear(3, 3)

        def call(self, x: Tensor) -> Tensor:
            for layer in (self.first, *self.blocks, self.plain):
                x = layer(x)
            return x

    model = Tower()
    model(torch.zeros(2, 3))
    within = ["first", "block", "block_", "plain", "plain.module"]
    layers = [name for name in modules_by_name(model) if "_torch_params" not in name]
    assert layers == ["", *within]


def test_each_parameter_is_in_the_layer_that_has_it(keras: Any) -> None:
    modules = modules_by_name(network(keras))
    places = {path: name for name, module in modules.items() for path in module._parameters}
    assert places["conv2d/kernel"] == "conv2d._torch_params"
    assert places["multi_head_attention/query/bias"] == "multi_head_attention._query_dense._torch_params"
    assert places["head/dense/kernel"] == "head.dense._torch_params"
    assert len(places) == sum(len(module._parameters) for module in modules.values()), "in no layer around it"


def test_layers_get_no_parameters_that_they_do_not_show(keras: Any) -> None:
    """Keras adds them where a layer is asked for its `named_parameters`, and the state dict then has them twice."""

    class Tower(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = keras.layers.Dense(3), keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    model = Tower()
    model(np.zeros((2, 4), "float32"))
    before = list(model.state_dict())
    with watch(model, backend=Listening(), log_freq=1, verbose=False):
        model(torch.ones(2, 4)).sum().backward()
    assert list(model.state_dict()) == before


def test_training_by_fit_is_undisturbed(keras: Any) -> None:
    plain = network(keras)
    alone = fit(keras, plain)
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    watched = network(keras)
    with watch(watched, backend=Listening(), log_freq=1):
        assert fit(keras, watched) == alone
    for one, other in zip(plain.get_weights(), watched.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_layers_return_is_recorded(keras: Any) -> None:
    model, heard, seen = network(keras), Listening(), dict[str, float]()
    layers = {name: layer for name, layer in modules_by_name(model).items() if isinstance(layer, keras.layers.Layer)}
    with watch(model, backend=heard, log_freq=1):
        for name, layer in layers.items():
            layer.register_forward_hook(
                lambda _m, _x, y, name=name: seen.update({name: float(y.detach().double().mean())})
            )
        loss = model(torch.randn(4, 8, 8, 1), training=True).square().mean()
        loss.backward()
    means = {name: heard.row((name, 0, "output", "output", "value"))[0]["mean"] for name in seen}
    assert means == pytest.approx(seen, rel=1e-5, abs=1e-7)
    assert {"conv2d", "multi_head_attention._query_dense", "head", "head.dense"} <= seen.keys()


@pytest.mark.parametrize("broken", ["named_layers", "_walk", "_children", "_within", "_parameters", "_joined"])
def test_a_fault_leaves_the_modules_that_torch_finds(broken: str, keras: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise ValueError("broken")

    process_state.reset()  # it warns once
    monkeypatch.setattr(capture.modules_by_name if broken == "named_layers" else capture.keras_layers, broken, fail)
    model, heard = network(keras), Listening()
    with pytest.warns(TorchgraphWarning, match="Layers of Keras are not recorded.*broken"):
        watcher = watch(model, backend=heard, log_freq=1)
    with watcher:
        fit(keras, model)
    assert ("", 0, "output", "output", "value") in heard.recorded()


def test_nothing_is_found_in_a_sound_training(keras: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network(keras)
    with watch(model, backend="record", logdir=str(tmp_path), log_freq=1, verbose=False):
        fit(keras, model)
    assert main(["check", str(tmp_path)]) == 0, capsys.readouterr().out
