"""The page of the gradient flow: a CNN on digits, a transformer on tokens, an MLP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import socket
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, expect
from playwright.sync_api import Page as Tab
from torch import Tensor, nn

from tests.browser.page import Viewer, expect_soon, expect_true
from tests.exploring.models import load_forward_mode, mlp
from tests.processes import wait_for
from torchgraph_explorer.exploring.serving import Page
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.source import LiveSource

Open = Callable[..., Session]


@pytest.fixture
def flow(page: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Explores a model in the page; with `again`, as a program that is started anew and opens a page of its own.

    The browser must have nothing to complain of.
    """
    monkeypatch.chdir(tmp_path)
    load_forward_mode()
    served: list[Page] = []
    viewer = Viewer(page, "")

    def explore(
        model: nn.Module,
        x: Tensor,
        loss: Callable[[Tensor], Tensor],
        *,
        words: list[str] | None = None,
        again: bool = False,
    ) -> Session:
        session = Session(model, x, loss=loss)
        port = 0
        if again:
            before = served.pop()
            before.close()
            port = urlsplit(before.url).port or 0
            expect_soon(lambda: check_is_free(port))  # another one would be taken
        served.append(Page(LiveSource(session, loss=loss, words=words), host="127.0.0.1", port=port, logdir=None))
        tab = page.context.new_page() if again else page
        tab.goto(served[-1].url)
        return session

    yield explore
    for tab in page.context.pages[1:]:
        tab.close()
        viewer.complaints.clear()  # of the time without a server
    page.goto("about:blank")
    viewer.leave()
    for one in served:
        one.close()
    assert viewer.complaints == []


def check_is_free(port: int) -> None:
    with socket() as asking:
        assert asking.connect_ex(("127.0.0.1", port)) != 0


def digits() -> tuple[nn.Module, Tensor, Callable[[Tensor], Tensor]]:
    """A CNN of three layers, a little trained, two digits, and its loss for them."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(data.target)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1, stride=2),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(20):
        chosen = torch.randint(0, len(images), (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()
    return model, images[:2], lambda output: nn.functional.cross_entropy(output, labels[:2])


class TinyTransformer(nn.Module):
    """A block over seven tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.block(self.embed(tokens)))


NAMES_OVER_NODES = """(box) => {
  const middle = (one) => (one.getBoundingClientRect().left + one.getBoundingClientRect().right) / 2;
  const names = [...box.querySelectorAll('.flow-column:not(.first, .last) select')].map(middle);
  const nodes = [...box.querySelectorAll('.flow-node rect')].map(middle);
  return names.length > 0 && names.every((at) => nodes.some((one) => Math.abs(one - at) < 6));
}"""

COVERING = """(all) => {
  const boxes = all.map((one) => one.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.filter((one, i) => boxes.some((other, j) => i < j && meet(one, other))).length;
}"""

PICTURE = "(canvas) => canvas.toDataURL()"


def card(page: Tab, name: str) -> Locator:
    return page.locator(f'.flow-card[aria-label="{name}"]')


def select_strongest(page: Tab, session: Session, name: str) -> tuple[int, ...]:
    """Select, with the keyboard, the element of the first sample that has the largest gradient; returns its index."""
    gradient = session.gradient(name)[0].abs()
    channel, row, column = (int(one) for one in torch.unravel_index(gradient.argmax(), gradient.shape))
    canvas = card(page, name).locator("canvas")
    canvas.focus()
    for key in [*["ArrowRight"] * (channel * gradient.shape[2] + column), *["ArrowDown"] * row, "Enter"]:
        canvas.press(key)
    expect(card(page, name)).to_contain_text(f"Selected: [0, {channel}, {row}, {column}]")
    return 0, channel, row, column


def test_a_click_shows_what_an_element_gets_and_sends(page: Tab, flow: Open) -> None:
    session = flow(*digits())
    index = select_strongest(page, session, "2")
    gets = session.contributions("input", "2", to=index)
    expect(card(page, "input[0]").locator(".flow-received")).to_contain_text("gets from the selection")
    strongest = int(gets.abs().argmax())
    expect(card(page, "input[0]").locator("li").first).to_contain_text(f"[0, 0, {strongest // 8 % 8}, {strongest % 8}]")
    expect(card(page, "4")).to_contain_text("sends to the selection")
    card(page, "2").locator("canvas").click(position={"x": 4, "y": 4})
    expect(card(page, "2")).to_contain_text("Selected: [0, 0, 0, 0]")


def test_a_finger_that_scrolls_the_page_selects_nothing(page: Tab, flow: Open) -> None:
    flow(*digits())
    canvas = card(page, "2").locator("canvas")
    assert canvas.evaluate("(one) => getComputedStyle(one).touchAction") == "pan-x pan-y"
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    canvas.dispatch_event("pointercancel")
    page.mouse.up()
    expect(card(page, "2")).not_to_contain_text("Selected")


def test_the_threshold_leaves_the_strongest_contributions_and_links(page: Tab, flow: Open) -> None:
    select_strongest(page, flow(*digits()), "2")
    listed = card(page, "0").locator("li")
    expect(listed).to_have_count(6)
    links = page.locator(".flow-path.is-positive, .flow-path.is-negative")
    expect(links).not_to_have_count(0)
    before = links.count()
    page.get_by_label("Threshold").fill("100")
    page.get_by_label("Threshold").press("Enter")
    expect(listed).to_have_count(1)
    expect(page.locator(".flow-path.is-rest")).to_have_count(4)
    expect_soon(lambda: check_fewer(links, before))


def check_fewer(links: Locator, before: int) -> None:
    assert 4 <= links.count() < before


def test_a_node_of_the_links_selects_its_elements(page: Tab, flow: Open) -> None:
    flow(*digits())
    page.get_by_label("Groups of 2", exact=True).select_option(label="6 along dimension 1")
    expect_true(page.locator(".flow-sankey-box"), NAMES_OVER_NODES)
    node = page.get_by_role("button", name=re.compile(r"^2 \[·, \d, ·, ·\]")).first
    node.focus()
    node.press("Enter")
    expect(card(page, "2")).to_contain_text(re.compile(r"Selected: \[·, \d, ·, ·\]"))


def test_an_edit_is_run_compared_undone_and_done_again(page: Tab, flow: Open) -> None:
    session = flow(*digits())
    value = page.locator(".flow-header b")
    before = value.inner_text()
    page.get_by_label("Edit the input", exact=True).last.check()
    page.get_by_label("Value that the brush sets").fill("3")
    page.get_by_label("Value that the brush sets").press("Enter")
    box = card(page, "input[0]").locator("canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 40, steps=8)
    page.mouse.up()
    expect(value).not_to_have_text(before)
    assert int((session.value("input", when="difference") != 0).sum()) >= 4
    expect(page.get_by_text(f"(before {before})")).to_be_visible()
    page.get_by_text("Difference", exact=True).click()
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("Control+z")
    expect(value).to_have_text(before)
    page.keyboard.press("Control+Shift+z")
    expect(value).not_to_have_text(before)
    page.get_by_role("button", name="Reset").click()
    expect(value).to_have_text(before)


def test_maps_are_used_with_the_keyboard(page: Tab, flow: Open) -> None:
    flow(*digits())
    canvas = card(page, "2").locator("canvas")
    canvas.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        canvas.press(key)
    expect(card(page, "2")).to_contain_text("Selected: [0, 0, 1, 1]")
    page.keyboard.press("Escape")
    expect(page.locator(".flow-selected")).to_have_count(0)


def test_two_windows_show_the_same_session(page: Tab, flow: Open) -> None:
    flow(*digits())
    another = page.context.new_page()
    another.goto(page.url)
    card(another, "4").locator("canvas").click(position={"x": 4, "y": 4})
    expect(card(page, "4")).to_contain_text("Selected: [0, 0, 0, 0]")
    another.close()


def test_tokens_are_edited_as_numbers(page: Tab, flow: Open) -> None:
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    words = ["pad", "the", "cat", "sat", "on", "a", "mat", "and", "ate", "nine", "fish"]
    session = flow(TinyTransformer().eval(), tokens, lambda output: output[0, -1, 3], words=words)
    shown = page.locator(".flow-token input[type=text]")
    for one, word in enumerate(words[1:8]):
        expect(shown.nth(one)).to_have_value(word)
    token = page.get_by_label("input[0][0, 2]")
    expect(token).to_have_value("3")
    token.fill("9")
    token.press("Enter")
    expect(page.locator(".flow-header")).to_contain_text("(before")
    expect(shown.nth(2)).to_have_value("nine")
    assert session.value("input").tolist() == [[1, 2, 9, 4, 5, 6, 7]]
    card(page, "head").locator("canvas").click(position={"x": 4, "y": 4})
    expect(card(page, "head")).to_contain_text("Selected: [0, 0, 0]")
    shown.nth(1).fill("Fish")
    expect(page.locator("datalist option")).to_have_attribute("value", "fish")
    shown.nth(1).press("Enter")
    expect(page.get_by_label("input[0][0, 1]")).to_have_value("10")
    shown.nth(0).fill("o")
    shown.nth(0).press("Enter")
    expect(page.get_by_role("alert")).to_have_text("No token has the word 'o'. Similar: 'on'.")
    expect(shown.nth(0)).to_have_value("the")
    assert session.value("input").tolist() == [[1, 10, 9, 4, 5, 6, 7]]


def test_what_leads_past_a_tensor_is_a_link_of_its_own(page: Tab, flow: Open) -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            return self.head(x + self.second(x))

    flow(Skip(), torch.rand(1, 4), torch.sum)
    expect(page.locator(".flow-path.is-past")).to_have_count(1)
    expect(page.locator(".flow-path.is-past title")).to_have_text(re.compile("^past second: "))


OVERLAPPING = """(all) => {
  const boxes = all.map((one) => one.getBoundingClientRect()).sort((a, b) => a.left - b.left);
  return boxes.slice(1).filter((box, i) => box.left < boxes[i].right).length;
}"""


def test_the_maps_are_in_sight_in_a_small_window(flow: Open, page: Tab) -> None:
    page.set_viewport_size({"width": 480, "height": 300})
    flow(*digits())
    card = page.locator(".flow-card").first
    expect_true(card, "(card) => card.getBoundingClientRect().top < innerHeight / 2")
    expect_true(page.locator(".flow-main"), "(main) => main.scrollWidth <= main.clientWidth")


def test_the_choices_are_folded_in_a_narrow_window(flow: Open, page: Tab) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    flow(*digits())
    titles = page.locator(".flow-folds button")
    expect(titles).to_have_text(["How it is shown", "Edit the input"])
    expect_true(page.locator(".flow-card").first, "(card) => card.getBoundingClientRect().top < innerHeight / 4")
    for title in titles.all():
        bar = page.get_by_role("group", name=title.inner_text(), exact=True)
        expect(bar).to_be_hidden()
        title.press("Enter")
        expect(bar).to_be_visible()
        expect(title).to_have_attribute("aria-expanded", "true")
    expect_true(page.locator(".flow-main"), "(main) => main.scrollWidth <= main.clientWidth")


def test_long_names_are_shortened_to_the_room_that_they_have(page: Tab, flow: Open) -> None:
    model = nn.Sequential()
    for number in range(3):
        model.add_module(f"{'WWMm_' * 20}{number}", nn.Linear(3, 3))
    page.set_viewport_size({"width": 700, "height": 500})
    flow(model, torch.rand(2, 3), torch.sum)
    expect(page.locator(".flow-column code")).to_have_count(4)
    assert page.locator(".flow-column code").evaluate_all(OVERLAPPING) == 0
    for around in (".flow-chain", ".flow-card header"):
        sideways = "(all) => all.some((one) => one.scrollWidth > one.clientWidth + 1)"
        assert not page.locator(around).evaluate_all(sideways), around
    expect_true(page, "() => document.documentElement.scrollHeight <= innerHeight")


@pytest.mark.parametrize("layers", [pytest.param(2, id="three columns"), pytest.param(3, id="four columns")])
def test_the_choices_of_groups_do_not_overlap_on_a_phone(page: Tab, flow: Open, layers: int) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    flow(nn.Sequential(*(nn.Linear(3, 3) for _ in range(layers))), torch.rand(2, 3), torch.sum)
    selects = page.get_by_label(re.compile("^Groups of "))
    expect(selects).to_have_count(layers + 1)
    boxes = [select.bounding_box() for select in selects.all()]
    assert all(one is not None and one["width"] > 80 for one in boxes)
    assert selects.evaluate_all(COVERING) == 0
    selects.first.select_option(label="2 along dimension 0")
    expect(selects.first).to_have_value("0")


def test_contributions_that_are_not_finite_leave_a_sentence_and_no_range(page: Tab, flow: Open) -> None:
    model = mlp()
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    flow(model, torch.rand(3, 6), torch.sum)
    expect(page.locator(".flow-sankey-box")).to_contain_text("No contribution is finite and other than zero.")
    first = page.locator(".flow-card").first.locator("header + * + p, header + p").first
    expect(first).to_have_text("gradient 18 NaN or ∞")


def test_an_mlp_is_shown_in_both_themes(page: Tab, flow: Open) -> None:
    flow(mlp(), torch.rand(3, 6), torch.sum)
    expect(page.locator(".flow-path").first).to_be_visible()
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name=re.compile("^Theme")).click()
    page.get_by_role("button", name=re.compile("^Theme")).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect_true(page, f"(light) => ({colour})() !== light", arg=light)


def test_one_scale_is_that_of_the_tensors_on_show(page: Tab, flow: Open) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.01)  # so that the last gradient is much larger than those before
    flow(model, torch.rand(1, 3), torch.sum)
    canvas = card(page, "0").locator("canvas")
    expect(canvas).to_be_visible()
    own = canvas.evaluate(PICTURE)
    page.get_by_label("One scale").check()
    expect_soon(lambda: check_differs(canvas, own))
    faded = canvas.evaluate(PICTURE)
    page.get_by_role("button", name="Remove 2").click()
    expect(card(page, "2")).to_have_count(0)
    expect_soon(lambda: check_differs(canvas, faded))


def test_a_program_that_is_started_again_shows_its_own_numbers(page: Tab, flow: Open) -> None:
    x = torch.ones(1, 3)
    for weight in (0.5, 2.0):
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3))
        for parameter in model.parameters():
            nn.init.constant_(parameter, weight)
        flow(model, x, torch.sum, again=weight > 1)
        expect(card(page, "0")).to_contain_text(f"gradient {9 * weight**2:.4g} to", timeout=8_000)


def check_differs(canvas: Locator, before: str) -> None:
    assert canvas.evaluate(PICTURE) != before


def test_a_case_is_saved_from_the_page(page: Tab, flow: Open) -> None:
    flow(mlp(), torch.rand(3, 6), torch.sum)
    expect(page.locator(".flow-path").first).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved case.npz")).to_be_visible()
    assert [one.name for one in Path.cwd().iterdir()] == ["case.npz"]


def test_a_region_is_selected_as_a_sum_and_by_index(page: Tab, flow: Open) -> None:
    session = flow(*digits())
    middle = card(page, "2")
    drag(page, middle, (4, 4), (40, 20))
    expect(middle).to_contain_text("Selected: [0, 0, 0:2, 0:3]")
    field = middle.get_by_label("Index in 2")
    field.fill("0, 1:3, 2:4, :")
    field.press("Enter")
    expect(middle).to_contain_text("Selected: [0, 1:3, 2:4, ·]")
    gradient = session.gradient("2")[0, 1:3, 2:4].sum()
    expect(middle).to_contain_text("16 elements on these maps, sum of gradient: ")
    assert number(middle.locator(".flow-selected-box b")) == pytest.approx(float(gradient), rel=1e-2)
    for name in ("input", "0", "4"):
        first, second = (name, "2") if name != "4" else ("2", "4")
        which = {"to" if name != "4" else "from_": (0, slice(1, 3), slice(2, 4))}
        expected = session.contributions(first, second, **which).sum()
        total = card(page, "input[0]" if name == "input" else name).locator(".flow-received b")
        expect_true(page, IS_NEAR, arg=[total.element_handle(), float(expected)])
    field.fill("0, 6, 0, 0")
    middle.get_by_role("button", name="Add").click()
    expect(middle.get_by_role("alert")).to_contain_text("'6' is no index into a dimension of size 6")


def test_maps_are_zoomed_together_from_corresponding_places(page: Tab, flow: Open) -> None:
    flow(*digits())
    page.get_by_label("Link maps").check()
    stride = card(page, "2").get_by_label("Stride of the rows of 2 over input[0]")
    expect(stride).to_have_value("2")
    for part in ("rows", "columns"):  # the convolution has a padding of one
        offset = card(page, "2").get_by_label(f"Offset of the {part} of 2 over input[0]")
        offset.fill("0")
        offset.press("Enter")
    field = card(page, "2").get_by_label("Index in 2")
    field.fill("0, 0, 1:3, 2:4")
    field.press("Enter")
    card(page, "2").get_by_role("button", name="Zoom to [0, 0, 1:3, 2:4]").click()
    expect(card(page, "2").locator(".flow-part")).to_contain_text("rows 1:3, columns 2:4")
    expect(card(page, "input[0]").locator(".flow-part")).to_contain_text("rows 1:6, columns 3:8")
    expect(card(page, "6").locator(".flow-part")).to_have_count(0)  # it has other dimensions
    canvas = card(page, "input[0]").locator("canvas")
    canvas.focus()
    canvas.press("ArrowUp")  # out of the part that is shown
    expect(card(page, "input[0]").locator(".flow-part")).to_contain_text("rows 0:5, columns 3:8")
    page.keyboard.press("a")
    expect(page.locator(".flow-part")).to_have_count(1)
    expect(page.locator(".flow-part")).not_to_contain_text("rows")


def test_a_number_that_is_being_typed_stays_while_the_session_is_changed_elsewhere(page: Tab, flow: Open) -> None:
    flow(*digits())
    another = page.context.new_page()
    another.goto(page.url)
    page.get_by_label("Link maps").check()
    columns = iter(range(8))

    def change() -> None:
        """Draws the whole page anew, which leaves the focus where it is."""
        elsewhere = card(another, "0").get_by_label("Index in 0")
        elsewhere.fill(chosen := f"0, 0, 0, {next(columns)}")
        elsewhere.press("Enter")
        expect(card(page, "0")).to_contain_text(f"Selected: [{chosen}]")

    offset = "Offset of the rows of 2 over input[0]"
    for label in (offset, "Threshold", "Most links", "Value that the brush sets"):
        field = page.get_by_label(label)
        expect(field).not_to_have_value("7")
        field.fill("7")
        change()
        expect(field).to_have_value("7")
        field.press("Enter")
        change()
        expect(field).to_have_value("7")
    page.get_by_label("Stride of the rows of 2 over input[0]").fill("0")
    page.get_by_label(offset).focus()
    expect(page.get_by_label("Stride of the rows of 2 over input[0]")).to_have_value("2")
    another.close()


def test_regions_of_the_input_are_zeroed_copied_and_pasted(page: Tab, flow: Open) -> None:
    session = flow(*digits())
    before = session.value("input[0]")
    image = card(page, "input[0]")
    page.get_by_label("Edit the input", exact=True).last.check()
    canvas = image.locator("canvas")
    canvas.focus()
    for key in ("ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        canvas.press(key)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    canvas.press("Control+c")
    rows = page.evaluate("navigator.clipboard.readText()").split("\n")
    gradient = session.gradient("input[0]")[0, 0, 1:3, 0:2]
    np.testing.assert_allclose([[float(one) for one in row.split("\t")] for row in rows], gradient, rtol=1e-6)
    page.evaluate("navigator.clipboard.writeText('[[ 2.  nan]\\n [-1e-1 0.5]]')")
    canvas.press("Escape")
    for key in ("ArrowDown", "ArrowRight", "Control+v"):
        canvas.press(key)
    expect(page.locator(".flow-header")).to_contain_text("nan")
    pasted = torch.tensor([[2.0, float("nan")], [-0.1, 0.5]])
    expected = before.clone()
    expected[0, 0, 3:5, 2:4] = pasted
    torch.testing.assert_close(session.value("input[0]"), expected, equal_nan=True)
    drag_with_shift(page, image, (4, 4), (230, 60))
    page.get_by_role("button", name="Zero", exact=True).click()
    expected[0, 0, 0:3] = 0
    assert wait_for(lambda: torch.allclose(session.value("input[0]"), expected, equal_nan=True))
    torch.testing.assert_close(session.value("input[0]"), expected, equal_nan=True)
    canvas.focus()
    page.evaluate("navigator.clipboard.writeText('a cat')")
    canvas.press("Control+v")
    expect(page.get_by_role("alert")).to_contain_text("What was pasted is no table of numbers.")


IS_NEAR = """([node, expected]) =>
    Math.abs(Number(node.textContent.replace('\u2212', '-')) - expected) <= 0.01 * Math.abs(expected) + 1e-6"""
"""Whether an element shows a number."""


def number(shown: Locator) -> float:
    return float(shown.inner_text().replace("\N{MINUS SIGN}", "-"))


def drag_with_shift(page: Tab, where: Locator, start: tuple[int, int], stop: tuple[int, int]) -> None:
    page.keyboard.down("Shift")
    drag(page, where, start, stop)
    page.keyboard.up("Shift")


def drag(page: Tab, where: Locator, start: tuple[int, int], stop: tuple[int, int]) -> None:
    """Over the canvas of a card, in its pixels."""
    box = where.locator("canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start[0], box["y"] + start[1])
    page.mouse.down()
    page.mouse.move(box["x"] + stop[0], box["y"] + stop[1], steps=4)
    page.mouse.up()
