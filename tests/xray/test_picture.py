"""The x-ray as an SVG file: `torchgraph xray`."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.record.examples import SESSION, logged, write
from tests.record.test_cells import SERIES, STEPS, frames
from torchgraph_explorer import open_run
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.record.cells.codes import encode
from torchgraph_explorer.schema import Finished
from torchgraph_explorer.xray.colours import BAD_COLOUR, EMPTY_COLOUR, STOPS, ZERO_COLOUR, pixels_of, scale_of
from torchgraph_explorer.xray.picture import XrayMark, _Picture, xray_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("picture")
    losses = logged(list(range(STEPS)), loss=[1 / (step + 1) for step in range(STEPS)])
    write(path, SERIES, *frames(range(STEPS)), losses, Finished(3_000.0))
    return path


def image_of(svg: str) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    """The pixels of the picture's image, which must be a PNG without filters."""
    found = re.search(r"data:image/png;base64,([^\"]+)", svg)
    assert found
    data = base64.b64decode(found[1])
    width, height = struct.unpack(">II", data[16:24])
    at = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[at - 4 : at])
    lines = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + size]), np.uint8).reshape(height, 1 + 3 * width)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(height, width, 3)


@pytest.mark.slow
def test_the_picture_has_a_row_a_module_the_loss_and_red_where_it_is_not_finite(folder: Path) -> None:
    svg = xray_svg(open_run(folder).model(), "output_std", marks=[XrayMark("b", 77, "error", "NaN <here>")])
    root = ET.fromstring(svg)
    assert [one.text for one in root.iter(f"{SVG}text")][:6] == [
        *("net: output std", "loss", "0.00667 to 1", "ResNet", "a", "b")
    ]
    assert root.find(f"{SVG}polyline") is not None
    assert [one.text for one in root.iter(f"{SVG}title")] == ["NaN <here>"]
    pixels = image_of(svg)
    red = (pixels == BAD_COLOUR).all(axis=-1)
    assert red.any(axis=1).tolist() == [False, False, True]
    columns = np.flatnonzero(red[2]) / pixels.shape[1] * STEPS
    assert 76 <= columns.min() <= 77 <= columns.max() <= 78


def test_marks_that_would_cover_each_other_are_one_of_the_worst_colour(folder: Path) -> None:
    marks = [
        XrayMark(None, 0, "info", "First."),
        XrayMark(None, 1, "error", "Second."),
        XrayMark("b", 77, "info", "Far."),
    ]
    root = ET.fromstring(xray_svg(open_run(folder).model(), "output_std", marks=marks))
    told = [(one.get("fill"), one.findtext(f"{SVG}title")) for one in root.iter(f"{SVG}path")]
    assert told == [("#c81414", "First. Second."), ("#2458d3", "Far.")]


def test_colours_go_from_the_least_to_the_largest_number() -> None:
    codes = encode(np.array([1e-3, 1.0, 1e3, np.nan, 1.0]), np.array([False, False, False, False, True]))
    pixels = pixels_of(codes, scale_of(codes, is_share=False))
    expected = [STOPS[0], STOPS[2], STOPS[4], EMPTY_COLOUR, BAD_COLOUR]
    np.testing.assert_allclose(pixels.astype(int), expected, atol=2)


def test_zero_has_a_colour_of_its_own_where_the_scale_is_logarithmic() -> None:
    codes = encode(np.array([[0.0, 1e-6, 1.0]]), np.zeros((1, 3), bool))
    assert pixels_of(codes, scale_of(codes, is_share=False))[0].tolist()[:2] == [[*ZERO_COLOUR], [*STOPS[0]]]
    assert pixels_of(codes, scale_of(codes, is_share=True))[0].tolist()[0] == [*STOPS[0]]
    picture = _Picture("update_ratio", ["a"], ["a"], codes, np.arange(4.0), 400, "title")
    assert [one.text for one in ET.fromstring("".join(picture.svg(None, []))).iter(f"{SVG}text")][-1] == "zero"


def test_a_spike_of_the_loss_is_in_the_picture_whole(tmp_path: Path) -> None:
    values = [4_094.0 if step == 50 else 1 + step / STEPS for step in range(STEPS)]
    write(tmp_path, SERIES, *frames(range(0, STEPS, 7)), logged(list(range(STEPS)), loss=values))
    root = ET.fromstring(xray_svg(open_run(tmp_path).model()))
    assert {"loss, log", "1 to 4094"} <= {one.text for one in root.iter(f"{SVG}text")}
    line = root.find(f"{SVG}polyline")
    assert line is not None
    heights = [float(point.partition(",")[2]) for point in line.attrib["points"].split()]
    assert sorted(heights)[1] - min(heights) > 20


def test_a_run_that_has_lost_its_series_says_that_there_is_nothing_to_draw(tmp_path: Path) -> None:
    write(tmp_path, *frames(range(3)))
    with pytest.raises(OptionError, match="has steps and no series of a module, so there is nothing to draw"):
        xray_svg(open_run(tmp_path).model(), "output_std")


BAD_NAMES = {"markup": "<x>&\"'", "control": "\x00\x1b", "half": "\ud800", "long": "ﬁ" * 3000}


@pytest.mark.parametrize("bad", BAD_NAMES.values(), ids=BAD_NAMES)
def test_any_name_gives_a_picture_that_can_be_read(tmp_path: Path, bad: str) -> None:
    series = tuple(replace(one, module=one.module and f"{one.module}{bad}") for one in SERIES)
    write(tmp_path, series, *frames(range(3)), session=replace(SESSION, class_name=bad))
    ET.fromstring(xray_svg(open_run(tmp_path).model()))


def test_long_names_of_modules_and_of_the_loss_are_shortened_in_the_middle(tmp_path: Path) -> None:
    series = tuple(replace(one, module=one.module and f"encoder.{one.module}.{'x' * 30}") for one in SERIES)
    losses = replace(logged([0, 1, 2], loss=[3, 2, 1]), names=("train/cross_entropy_of_all_tokens/loss",))
    write(tmp_path, series, *frames(range(3)), losses)
    texts = ET.fromstring(xray_svg(open_run(tmp_path).model())).iter(f"{SVG}text")
    names = [str(one.text) for one in texts if one.get("text-anchor") == "end"]
    assert "train/cr…kens/loss" in names
    assert max(map(len, names)) <= 18


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_of_few_steps_has_a_picture(tmp_path: Path, steps: int) -> None:
    write(tmp_path, SERIES, *frames(range(steps)))
    assert image_of(xray_svg(open_run(tmp_path).model(), "zeros")).shape[0] == 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([0.12126, 43.8], ["≤ 0.121", "≥ 43.8, log"], id="plain"),
        pytest.param([4e-8, 43.8], ["≤ 4.0e−8", "≥ 43.8, log"], id="far"),
        pytest.param([math.nan, math.nan], ["nothing finite"], id="nothing finite"),
    ],
)
def test_the_legend_says_what_the_colours_stand_for(values: list[float], expected: list[str]) -> None:
    codes = encode(np.array([values]), ~np.isfinite([values]))
    picture = _Picture("output_std", ["a"], ["a"], codes, np.arange(3.0), 400, "title")
    texts = [one.text for one in ET.fromstring("".join(picture.svg(None, []))).iter(f"{SVG}text")]
    assert texts[-len(expected) - 1 :] == [*expected, "NaN or ∞"]


def test_a_run_without_steps_has_none(tmp_path: Path) -> None:
    write(tmp_path, SERIES)
    with pytest.raises(OptionError, match="has no recorded step yet, so there is nothing to draw"):
        xray_svg(open_run(tmp_path).model())


def test_the_command_writes_the_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "picture.svg"
    assert main(["xray", str(folder), "-o", str(target), "--statistic", "zeros"]) == 0
    assert "output share of zeros" in target.read_text()
    assert capsys.readouterr().out == f"Wrote {target}, {target.stat().st_size:,} bytes.\n"
    assert main(["xray", str(folder), "-o", str(tmp_path / "x.png")]) == 2
    assert "would hold an SVG picture. Give it a name that ends in .svg" in capsys.readouterr().err
    assert main(["xray", str(folder), "-o", str(tmp_path / "gone" / "x.svg")]) == 2
    assert "x.svg cannot be written: No such file or directory." in capsys.readouterr().err
