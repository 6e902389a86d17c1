"""Whatever is chosen is in the address; and the theme, which is chosen too."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewContext
from tests.browser.page import Viewer, expect_open, expect_painted, expect_true

CONV, RELU = "stage2.0.conv1#0", "stage2.0.relu#1"


@pytest.fixture
def chosen(viewer: Viewer, digits: str) -> Viewer:
    """A screen on which everything was chosen by hand."""
    viewer.open(digits)
    viewer.node("stage2#0").dblclick()
    viewer.node("stage2.0#0").dblclick()
    for key in (CONV, RELU):
        viewer.node(key).click()
        viewer.page.keyboard.press("p")
    viewer.select_mode("Bands")
    viewer.choose("Range", "Full")
    viewer.choose("Colour", "Output std")
    viewer.slider.fill("12")
    viewer.page.keyboard.press("t")
    viewer.page.keyboard.press("t")
    expect(viewer.page).to_have_url(re.compile("theme=dark.*"))
    return viewer


def expect_chosen(viewer: Viewer) -> None:
    """The screen of `chosen`."""
    expect_open(viewer, "DigitsNet", "stage2", "stage2.0")
    expect(viewer.page.locator(".panel")).to_have_count(2)
    expect(viewer.node(RELU)).to_have_attribute("aria-selected", "true")
    expect(viewer.node(RELU).locator(".node-pin")).to_be_visible()
    expect(viewer.readout).to_contain_text("step 12")
    expect(viewer.panels.get_by_label("Bands")).to_be_checked()
    expect(viewer.page.get_by_label("Range", exact=True)).to_have_value("full")
    expect(viewer.page.get_by_label("Colour", exact=True)).to_have_value("std")
    expect(viewer.page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_address_reproduces_the_screen_here_and_elsewhere(chosen: Viewer, new_context: NewContext) -> None:
    expect_chosen(chosen)
    chosen.page.reload()
    expect_chosen(chosen)
    elsewhere = Viewer(new_context().new_page(), chosen.url)
    elsewhere.page.goto(chosen.page.url)
    expect_chosen(elsewhere)
    for one in (chosen, elsewhere):
        expect_painted(one.strips.first)
    pictures = [
        one.strips.first.locator("canvas").first.evaluate("(one) => one.toDataURL()") for one in (chosen, elsewhere)
    ]
    assert pictures[0] == pictures[1]
    assert elsewhere.complaints == []


def test_an_address_typed_into_an_open_page_is_followed(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage1#0")
    expect_open(viewer, "DigitsNet", "stage1")
    viewer.open(digits, inside="stage3#0", step=3)
    expect_open(viewer, "DigitsNet", "stage3")
    expect(viewer.readout).to_contain_text("step 3")


def test_back_leads_to_the_page_and_the_run_of_before(viewer: Viewer, digits: str, scalars: str) -> None:
    viewer.open(digits)
    expect_open(viewer, "DigitsNet")
    viewer.page.get_by_role("combobox", name="Page").select_option(label="Network")
    viewer.page.wait_for_url("**view=network*")
    viewer.choose("Run", scalars)
    viewer.page.wait_for_url("**run=scalars*")
    viewer.page.go_back()
    viewer.page.wait_for_url(f"**run={digits}*view=network*")
    viewer.page.go_back()
    expect_open(viewer, "DigitsNet")


def test_an_address_that_makes_no_sense_still_opens_the_viewer(viewer: Viewer, digits: str) -> None:
    viewer.open(
        digits, inside="nowhere#9", selected="gone#0", pin=["0.gone#0", "x"], step="soon", mode="pie", theme="pink"
    )
    expect_open(viewer, "DigitsNet")
    expect(viewer.panel("gone#0")).to_contain_text("Nothing of this node was recorded.")


def test_a_run_that_is_not_there_is_said_and_another_run_and_model_can_be_chosen(
    viewer: Viewer, digits: str, pair: str
) -> None:
    viewer.open("yesterday")
    expect(viewer.page.get_by_text("There is no run yesterday")).to_be_visible()
    expect(viewer.connection).to_have_text("Run not found")
    expect(viewer.page.get_by_text("Looking for findings")).to_have_count(0)
    expect(viewer.button("Follow latest")).to_be_disabled()
    for name in ("Network", "Compare"):
        expect(viewer.page.get_by_text(name, exact=True)).to_have_count(0)
    viewer.choose("Run", digits)
    expect(viewer.node("stage2#0")).to_be_visible()
    expect_open(viewer, "DigitsNet")
    viewer.complaints.clear()  # the server's 404 is on the console
    viewer.choose("Run", pair)
    expect_open(viewer, "CompiledEntries")
    viewer.choose("Model", "linear")
    expect_open(viewer, "Sequential")
    expect(viewer.page).to_have_url(re.compile("run=pair&model=linear"))


def test_without_a_choice_the_theme_is_the_systems(viewer: Viewer, digits: str) -> None:
    for scheme, other in (("light", "dark"), ("dark", "light")):
        viewer.page.goto("about:blank")
        viewer.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        viewer.open(digits)
        expect(viewer.page.locator("html")).to_have_attribute("data-theme", scheme)
        viewer.page.emulate_media(color_scheme=other)  # type: ignore[arg-type]
        expect(viewer.page.locator("html")).to_have_attribute("data-theme", other)


def test_the_theme_button_goes_from_the_systems_to_light_and_dark_and_repaints_the_strips(
    viewer: Viewer, digits: str
) -> None:
    viewer.page.emulate_media(color_scheme="dark")
    viewer.open(digits, pin="0.classifier#0")
    expect_painted(viewer.chart("classifier, output, value"))
    page, button = viewer.page.locator("html"), viewer.button("Theme")
    for theme, name in (("dark", "the system's"), ("light", "light"), ("dark", "dark")):
        expect(page).to_have_attribute("data-theme", theme)
        expect(button).to_have_accessible_name(f"Theme: {name} (T)")
        button.click()
    viewer.page.keyboard.press("t")
    expect(page).to_have_attribute("data-theme", "light")
    viewer.settle()
    canvas = viewer.chart("classifier, output, value").locator("canvas").first
    before = canvas.evaluate("(one) => one.toDataURL()")
    viewer.page.keyboard.press("t")
    expect_true(viewer.page, "([one, before]) => one.toDataURL() !== before", arg=[canvas.element_handle(), before])


def test_a_reload_keeps_how_modules_are_listed_and_the_steps_of_the_x_ray(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, face="table")
    table = viewer.page.get_by_role("region", name="Modules at the step")
    viewer.page.get_by_label("Filter modules").fill("conv")
    table.get_by_role("button", name="Output std").click()
    expect_true(viewer.page, "() => location.hash.includes('table=-') && location.hash.includes('modules=conv')")
    listed = table.locator("tbody tr").all_inner_texts()
    viewer.page.reload()
    expect(table.locator("tbody tr")).to_have_text(listed, use_inner_text=True)
    viewer.open(digits, view="network")
    viewer.page.get_by_label("Find a module").fill("conv")
    modules = viewer.page.locator(".network tbody tr")
    viewer.page.get_by_role("button", name="parameters").click()
    expect_true(viewer.page, "() => location.hash.includes('network=total') && location.hash.includes('named=conv')")
    names = modules.locator("th").all_inner_texts()
    viewer.page.reload()
    expect(modules.locator("th")).to_have_text(names, use_inner_text=True)
    viewer.open(digits)
    viewer.page.get_by_role("button", name="Show fewer steps").click()
    steps = viewer.page.locator(".xray-axis span")
    expect_true(viewer.page, "() => location.hash.includes('stretch=')")
    shown = steps.all_inner_texts()
    viewer.page.reload()
    expect(steps).to_have_text(shown)
