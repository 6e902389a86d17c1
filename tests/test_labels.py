"""How modules, tensors and shapes are written; tests/contracts/labels.json has the cases, for the viewer as well."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.labels import CONTRACT, graph_of, tensor_of
from torchgraph_explorer.labels import label_within, signature_place, tensor_name
from torchgraph_explorer.schema import TensorInfo
from torchgraph_explorer.shapes import MOST_SIZES, joined, letters, shape_text


@pytest.mark.parametrize("case", CONTRACT["tensors"], ids=lambda case: f"{case['path']!r} of {case['parameters']}")
def test_a_tensor_goes_by_the_parameter_that_it_was_given_as(case: dict[str, Any]) -> None:
    assert tensor_name(case["path"], case["parameters"]) == case["name"]


@pytest.mark.parametrize("case", CONTRACT["signatures"], ids=lambda case: f"{case['parameters']}")
def test_inputs_are_in_the_order_of_the_parameters_of_forward(case: dict[str, Any]) -> None:
    assert sorted(case["paths"], key=lambda path: signature_place(path, case["parameters"])) == case["order"]


@pytest.mark.parametrize("case", CONTRACT["modules"], ids=lambda case: f"{case['name']!r} in {case['outer']!r}")
def test_an_index_goes_by_the_list_that_it_is_of(case: dict[str, Any]) -> None:
    assert label_within(case["name"], case["outer"], CONTRACT["classes"]) == case["label"]


@pytest.mark.parametrize("case", CONTRACT["shapes"], ids=lambda case: case["about"])
def test_what_varied_together_has_the_same_letter(case: dict[str, Any]) -> None:
    tensors = tuple(tensor_of(*one) for one in case["tensors"])
    named = letters(graph_of(tensors))
    assert [shape_text(one, named) for one in tensors] == case["texts"]


def test_there_are_letters_for_any_number_of_dimensions() -> None:
    many = tuple(tensor_of([None, None], [[1, 2], [i, i + 1]]) for i in range(100))
    texts = {shape_text(one, letters(graph_of(many))) for one in many}
    assert len(texts) == 100
    assert {"N×L", "N×A", "N×Z", "N×L2"} <= texts


def info(*shape: int | None, varied: tuple[tuple[int, ...], ...] = ()) -> TensorInfo:
    return TensorInfo("output", shape, "float32", True, varied)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(info(4, 3), info(4, 3), info(4, 3), id="the same"),
        pytest.param(info(4, 3), info(2, 3), info(None, 3, varied=((4, 2),)), id="one varied"),
        pytest.param(info(4, 3), info(2, 5), info(None, None, varied=((4, 2), (3, 5))), id="both varied"),
        pytest.param(
            info(None, 3, varied=((4, 2),)), info(1, 5), info(None, None, varied=((4, 2, 1), (3, 5))), id="one more"
        ),
        pytest.param(info(None, 3), info(None, 3), info(None, 3), id="never known"),
        pytest.param(info(None, 3), info(7, 3), info(None, 3, varied=((7,),)), id="not known at first"),
        pytest.param(info(4, 3), info(4, 3, 1), info(4, 3), id="another number of dimensions"),
    ],
)
def test_sizes_that_differ_leave_a_dimension_open_and_are_kept(
    old: TensorInfo, new: TensorInfo, expected: TensorInfo
) -> None:
    assert joined(old, new) == expected


def test_no_more_than_a_few_sizes_are_kept() -> None:
    known = info(0)
    for size in range(100):
        known = joined(known, info(size))
    assert known == info(None, varied=(tuple(range(MOST_SIZES)),))
