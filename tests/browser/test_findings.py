"""Findings: listed with root causes first, marked in graph, tree and time bar, and one click away from their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.page import Viewer, expect_open, expect_painted, expect_soon, expect_true
from tests.browser.runs import DEAD_FROM, NAN_FROM, ROUNDS, record_gan
from tests.shared import once
from tests.tables import thinned
from tests.troubled import record_troubled
from torchgraph_explorer import open_run
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.server.export import export_page

EVERYTHING = (
    ".finding-row, .finding-card, .findings-button, .finding-badge, .outline-finding, .time-finding, .tooltip-finding"
)

LIMIT_PIXELS = """(strip) => {
  const canvas = strip.querySelector('canvas');
  const probe = document.createElement('i');
  probe.style.color = 'var(--caution)';
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4)
    if (wanted.every((part, k) => Math.abs(data[i + k] - part) < 24) && data[i + 3] > 200) count += 1;
  return count;
}"""

ABOUT = "About this kind of finding"

ANSWER: dict[str, Any] = {
    **{"version": "0", "is_same": False, "is_complete": True, "left_out": 0, "problem": None, "recorded": 2},
    **{"looked_at": {"steps": 2, "first": 0, "last": 1}, "findings": []},
}
"""What `api/findings` says of a run of two steps without findings."""

CAMERA = "() => document.querySelector('.canvas > g').getAttribute('transform')"


def rows(viewer: Viewer) -> Locator:
    """The findings in the list."""
    return viewer.page.get_by_role("tree", name="Findings").get_by_role("treeitem")


def row(viewer: Viewer, title: str, place: str = "") -> Locator:
    """A finding in the list, by its title, and by its place if there are several."""
    named = viewer.page.locator(".finding-title", has_text=re.compile(f"^{re.escape(title)}$"))
    return rows(viewer).filter(has=named).filter(has_text=place)


def card(viewer: Viewer, title: str) -> Locator:
    """The words of the chosen finding."""
    return viewer.page.get_by_role("article", name=f"Finding: {title}")


def badge(viewer: Viewer, key: str) -> Locator:
    return viewer.node(key).locator(".finding-badge")


def in_tree(viewer: Viewer, module: str) -> Locator:
    """The mark of a module in the tree."""
    return viewer.page.locator(f'[id="module-{module}"] .outline-finding')


def found(logdir: Path, run: str) -> tuple[Finding, ...]:
    """What the rules say of a run."""
    return open_run(logdir / run).model().findings()


def roots(logdir: Path, run: str) -> int:
    """How many root causes a run has."""
    return sum(not one.causes for one in found(logdir, run))


def title(one: Finding) -> str:
    """What a finding is called in the list."""
    return "NaN or infinity" if one.kind == "nan" else one.kind.replace("-", " ").capitalize()


def unfold(viewer: Viewer) -> None:
    """Show what follows from the first root cause."""
    viewer.page.locator(".finding-leads").first.click()


def made_up(number: int, **changes: Any) -> dict[str, Any]:
    """A finding as `api/findings` has it."""
    return {
        "id": number,
        "kind": f"rule-{number}",
        "severity": "warning",
        "module": f"layers.{number}",
        "call": 0,
        "path": "output",
        "step": 0,
        "last_step": 1,
        "text": f"Text of {number}.",
        "advice": "Advice.",
        "evidence": {},
        "causes": [],
        "band": None,
        **changes,
    }


def tell(page: Page, answers: Callable[[], dict[str, Any]]) -> None:
    """Answer `api/findings` with what `answers` gives."""

    def fulfil(route: Route) -> None:
        route.fulfill(json={**ANSWER, **answers()})

    page.route("**/api/findings*", fulfil)


def test_root_causes_stand_first_and_what_follows_is_folded_below(viewer: Viewer, broken: str, logdir: Path) -> None:
    wanted, causes = found(logdir, broken), roots(logdir, broken)
    follows = wanted[1:][: next(at for at, one in enumerate(wanted[1:]) if not one.causes)]
    viewer.open(broken)
    expect(rows(viewer)).to_have_count(causes)
    expect(rows(viewer).first).to_contain_text("Input not normalised")
    expect(rows(viewer).first).to_contain_text(f"leads to {len(follows)}: ")
    expect(viewer.page.locator(".findings-foot")).to_have_text("Checked: 40 steps, 0 to 39.")
    unfold(viewer)
    expect(rows(viewer)).to_have_count(causes + len(follows))
    expect(row(viewer, "NaN or infinity")).to_have_attribute("aria-level", "2")
    expect(row(viewer, "NaN or infinity").get_by_role("img", name="error")).to_be_visible()
    expect(row(viewer, "NaN or infinity")).to_contain_text(f"head, weightsince step {NAN_FROM}")


def test_a_click_leads_to_step_node_panel_words_and_band(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    unfold(viewer)
    row(viewer, "Saturated activation", "squash").click()
    expect(viewer.readout).to_contain_text("step 0")
    expect(viewer.node("squash#0")).to_have_attribute("aria-selected", "true")
    words = viewer.panel("squash#0").get_by_role("article", name="Finding: Saturated activation")
    expect(words).to_contain_text("lies beyond ±3")
    expect(words).to_contain_text("Try: Lower the learning rate")
    expect(words).to_contain_text("Not allowed: elements below −3 or above 3")
    strip = words.get_by_role("slider")
    expect_painted(strip)
    expect_soon(lambda: check_limit(strip, 50))
    others = viewer.panel("squash#0").get_by_role("slider", name=re.compile("^squash, output, value"))
    others.scroll_into_view_if_needed()  # what is out of sight may wait
    expect_painted(others)
    assert others.evaluate(LIMIT_PIXELS) == 0


def check_limit(strip: Locator, pixels: int) -> None:
    assert strip.evaluate(LIMIT_PIXELS) > pixels


def test_the_words_of_a_finding_are_in_sight_beside_other_panels(viewer: Viewer, broken: str) -> None:
    place = "body.1.act#0"
    pins = [f"{at}.{key}" for at, key in enumerate(["body.0#0", "body.2#0", "body.0.fc#0", place])]
    viewer.open(broken, pin=pins)
    body = viewer.panel(place).locator(".panel-body")
    expect(viewer.strips.first).to_be_visible()
    body.evaluate("(one) => one.scrollTo({top: 400})")
    viewer.page.locator(".panels-columns").evaluate("(one) => one.scrollTo({left: 0})")
    unfold(viewer)
    row(viewer, "Dead units", "body.1.act").click()
    card = viewer.page.get_by_role("article", name="Finding: Dead units")
    expect(card.get_by_text("Try:")).to_be_in_viewport(ratio=1)
    expect_true(body, "(one) => one.scrollTop === 0")


def test_the_band_of_a_statistic_is_drawn_though_the_strips_show_elements(viewer: Viewer, broken: str) -> None:
    viewer.open(broken, finding="input-not-normalised@stem#0/input[0]", pin="0.stem#0", step=0)
    words = card(viewer, "Input not normalised")
    expect(words).to_contain_text("Not allowed: root mean square below 0.01 or above 10")
    strip = words.get_by_role("slider")
    expect_painted(strip)
    expect_soon(lambda: check_limit(strip, 20))
    usual = viewer.panel("stem#0").get_by_role("slider", name=re.compile("^stem, x, value|^stem, input"))
    expect_painted(usual)
    assert usual.evaluate(LIMIT_PIXELS) == 0
    words.get_by_role("button", name="Close the finding").click()
    expect(words).to_have_count(0)
    expect(viewer.panel("stem#0")).to_be_visible()


def test_the_strip_of_a_finding_goes_on_for_the_steps_of_one_optimizer(own_viewer: Viewer, own_logdir: Path) -> None:
    record_gan(own_logdir, mean=300.0)
    own_viewer.open("gan", finding="input-not-normalised@generator.0#0/input[0]", step=0)
    strip = card(own_viewer, "Input not normalised").get_by_role("slider")
    expect(strip).to_have_attribute("aria-label", re.compile(f": {2 * ROUNDS} steps, "))
    own_viewer.choose("Steps of", "Adam")
    expect(strip).to_have_attribute("aria-label", re.compile(f": {ROUNDS} steps, "))


def test_the_way_leads_into_the_inside_that_holds_the_place_and_to_the_cause(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    unfold(viewer)
    row(viewer, "Exploding activation", "body.1.fc").click()
    expect_open(viewer, "Broken", "body", "body.1")
    expect(viewer.readout).to_contain_text(f"step {DEAD_FROM}")
    expect(viewer.node("body.1.fc#0")).to_be_in_viewport()
    expect(viewer.panel("body.1.fc#0")).to_be_visible()
    card(viewer, "Exploding activation").get_by_role("button", name="Input not normalised").click()
    expect_open(viewer, "Broken")
    expect(viewer.panel("stem#0").get_by_role("article", name="Finding: Input not normalised")).to_be_visible()


def test_what_is_of_the_whole_run_is_told_above_the_panels(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    unfold(viewer)
    row(viewer, "Update too large").click()
    expect(viewer.panels.locator(".finding-at-head")).to_contain_text("recorded updates change the weights")
    expect(viewer.page.locator("[data-pin]")).to_have_count(0)
    expect(row(viewer, "Update too large")).to_have_attribute("aria-selected", "true")


def test_a_module_that_is_not_called_is_shown_in_the_tree_with_its_parameters(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    row(viewer, "Unused module").click()
    expect(viewer.panel("spare#0")).to_contain_text("is never called at a recorded step")
    expect(viewer.page.locator('[id="module-spare"]')).to_have_attribute("aria-selected", "true")
    facts = viewer.page.get_by_role("region", name="Facts")
    expect(facts).to_contain_text("It is not called at step 0.")
    expect(facts.locator(".fact-rows")).to_contain_text("torch.nn.modules.linear.Linear")


def test_modules_that_a_finding_names_are_one_click_away(viewer: Viewer, broken: str) -> None:
    words = "The gradient of `weight` gets lost between `body.1.fc` and `stem`, and never comes to `spare`."
    tell(viewer.page, lambda: {"findings": [made_up(0, module="stem", path=None, text=words)]})
    viewer.open(broken)
    row(viewer, "Rule 0").click()
    told = card(viewer, "Rule 0")
    expect(told.locator("p button")).to_have_text(["body.1.fc", "stem", "spare"])
    told.get_by_role("button", name="body.1.fc").click()
    expect_open(viewer, "Broken", "body", "body.1")
    expect(viewer.panel("body.1.fc#0")).to_be_visible()
    told.get_by_role("button", name="spare").press("Enter")
    expect(viewer.page.get_by_role("region", name="Facts")).to_contain_text("It is not called at step 0.")
    told.get_by_role("button", name="stem").click()
    expect(viewer.panel("stem#0").get_by_role("article", name="Finding: Rule 0")).to_be_visible()


def unused(number: int) -> dict[str, Any]:
    """What is said of a layer of the demo's network as if it was never called."""
    module = f"stage{number}"
    words = f"`{module}` is never called at a recorded step."
    return made_up(number, kind="unused-module", module=module, call=None, path=None, text=words)


def test_those_that_say_the_same_are_one_row_which_opens(viewer: Viewer, digits: str) -> None:
    tell(viewer.page, lambda: {"findings": [unused(number) for number in range(20)]})
    viewer.open(digits)
    expect(rows(viewer)).to_have_count(1)
    group = rows(viewer).first
    expect(group).to_contain_text("Unused module: 20 modules")
    expect(group).to_contain_text("stage0–19")
    group.click()
    expect(group).to_have_attribute("aria-expanded", "true")
    expect(rows(viewer)).to_have_count(21)
    row(viewer, "Unused module", "stage3").first.click()
    expect(card(viewer, "Unused module")).to_contain_text("stage3 is never called")
    expect_address(viewer, "finding", "unused-module@stage3")
    row(viewer, "Unused module", "stage2").first.click()
    expect(card(viewer, "Unused module")).to_contain_text("stage2 is never called")
    expect_address(viewer, "finding", "unused-module@stage2")
    viewer.page.go_back()
    expect(card(viewer, "Unused module")).to_contain_text("stage3 is never called")
    expect(row(viewer, "Unused module", "stage3").first).to_have_attribute("aria-selected", "true")


def test_rows_that_say_the_same_work_by_keyboard_and_are_open_where_one_is_chosen(viewer: Viewer, digits: str) -> None:
    tell(viewer.page, lambda: {"findings": [unused(number) for number in range(20)]})
    viewer.open(digits, finding="unused-module@stage7")
    expect(rows(viewer)).to_have_count(21)
    current = viewer.page.locator(".finding-row.is-current")
    expect(current).to_contain_text("stage7")
    viewer.page.get_by_role("tree", name="Findings").focus()
    for key in ("ArrowLeft", "ArrowLeft"):  # to the row of all, and fold it
        viewer.page.keyboard.press(key)
    expect(rows(viewer)).to_have_count(1)
    viewer.page.keyboard.press("Enter")
    expect(rows(viewer)).to_have_count(21)
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        viewer.page.keyboard.press(key)
    expect(card(viewer, "Unused module")).to_contain_text("stage1 is never called")


def expect_address(viewer: Viewer, name: str, value: str) -> None:
    expect_true(viewer.page, f"() => new URLSearchParams(location.hash.slice(1)).get('{name}') === '{value}'")


def test_nodes_tree_and_time_bar_are_marked(viewer: Viewer, broken: str, logdir: Path) -> None:
    viewer.open(broken, step=5)
    expect(badge(viewer, "drop#0")).to_have_class(re.compile("is-warning"))
    expect(badge(viewer, "head#0")).to_have_class(re.compile("is-error"))
    expect(badge(viewer, "body#0")).to_have_class(re.compile("is-error is-inside"))
    inside = sum((one.module or "").startswith("body.") for one in found(logdir, broken))
    expect(viewer.node("body#0")).to_have_attribute("aria-label", re.compile(f"{inside} findings inside, error"))
    expect(in_tree(viewer, "body")).to_have_text(str(inside))
    expect(in_tree(viewer, "")).to_have_count(0)  # it is unfolded, and none is its own
    begins = {one.step for one in found(logdir, broken)}
    expect(viewer.page.locator(".time-finding")).to_have_count(len(begins))
    badge(viewer, "drop#0").click()
    expect(card(viewer, "Dropout extreme")).to_be_visible()
    viewer.page.locator(".time-finding").last.click()
    expect(viewer.readout).to_contain_text(f"step {NAN_FROM}")
    expect(viewer.panel("head#0")).to_contain_text("is not finite when step")
    expect(viewer.page.locator(".time-finding-span")).to_be_visible()


def test_the_list_works_by_keyboard_alone(viewer: Viewer, broken: str, logdir: Path) -> None:
    wanted, causes = found(logdir, broken), roots(logdir, broken)
    viewer.open(broken)
    expect(rows(viewer)).to_have_count(causes)
    tree = viewer.page.get_by_role("tree", name="Findings")
    tree.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):  # unfold, into it, on
        viewer.page.keyboard.press(key)
    current = viewer.page.locator(".finding-row.is-current")
    expect(current).to_contain_text(title(wanted[2]))
    expect(tree).to_have_attribute("aria-activedescendant", str(current.get_attribute("id")))
    viewer.page.keyboard.press("Enter")
    expect(card(viewer, title(wanted[2]))).to_be_visible()
    expect(tree).to_be_focused()
    for key in ("ArrowLeft", "ArrowLeft"):  # to the cause, and fold
        viewer.page.keyboard.press(key)
    expect(rows(viewer)).to_have_count(causes)
    viewer.page.keyboard.press("End")
    expect(current).to_contain_text(title([one for one in wanted if not one.causes][-1]))


def test_the_address_holds_the_chosen_finding(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    row(viewer, "Dropout extreme").click()
    viewer.page.wait_for_url(re.compile("finding=dropout-extreme%40drop"))
    viewer.page.reload()
    expect(viewer.panel("drop#0").get_by_role("article", name="Finding: Dropout extreme")).to_be_visible()
    expect(row(viewer, "Dropout extreme")).to_have_attribute("aria-selected", "true")


def test_a_link_that_names_a_finding_alone_leads_there(viewer: Viewer, broken: str) -> None:
    viewer.open(broken, finding="nan@head/weight")
    expect(viewer.readout).to_contain_text(f"step {NAN_FROM}")
    expect(viewer.panel("head#0")).to_contain_text("is not finite when step")
    expect(row(viewer, "NaN or infinity")).to_be_visible()  # it is unfolded


def test_a_healthy_run_says_plainly_that_nothing_was_found(viewer: Viewer, logdir: Path) -> None:
    once(logdir, "clean", record_troubled)
    viewer.open("clean")
    expect(viewer.page.locator(".findings")).to_have_text("No findings in 10 steps, 0 to 9")
    expect(viewer.page.locator(EVERYTHING)).to_have_count(0)


def test_errors_and_warnings_of_the_runs_other_models_are_told_and_lead_there(viewer: Viewer, pair: str) -> None:
    def fulfil(route: Route) -> None:
        is_linear = "model=linear" in route.request.url
        findings = [made_up(0), made_up(1, severity="error"), made_up(2, severity="info")] if is_linear else []
        route.fulfill(json={**ANSWER, "findings": findings})

    viewer.page.route("**/api/findings*", fulfil)
    viewer.open(pair, model="gates")
    others = viewer.page.get_by_role("list", name="Findings of other models")
    expect(viewer.page.locator(".findings")).to_contain_text("No findings in 2 steps")
    expect(others.get_by_role("listitem")).to_have_text("Inlinear11")
    others.get_by_role("button", name="linear").click()
    expect(rows(viewer)).to_have_count(3)
    expect(others).to_have_count(0)


def test_a_run_that_is_all_nan_has_one_finding(viewer: Viewer, logdir: Path) -> None:
    once(logdir, "all", record_troubled)
    viewer.open("all")
    rows(viewer).click()
    expect(viewer.readout).to_contain_text("step 6")
    expect(viewer.panel("stem#0").get_by_role("article", name="Finding: NaN or infinity")).to_be_visible()
    expect(badge(viewer, "stem#0")).to_have_text("1")
    expect(viewer.node("stem#0").locator(".node-badge")).to_have_text("first NaN")


def test_that_findings_cannot_be_fetched_is_told_until_they_can(viewer: Viewer, broken: str) -> None:
    viewer.page.route("**/api/findings*", lambda route: route.fulfill(status=503, json={"error": "Busy."}))
    viewer.open(broken)
    expect(viewer.page.locator(".findings")).to_have_text("Findings are not known. Busy. Trying again.")
    viewer.page.unroute_all()
    expect(rows(viewer).first).to_be_visible()
    viewer.complaints.clear()  # the refusals are on the console


def test_why_findings_are_not_known_is_told(viewer: Viewer, many: str) -> None:
    tell(viewer.page, lambda: {"problem": "The rules could not be run.", "looked_at": None})
    viewer.open(many)
    expect(viewer.page.locator(".findings")).to_contain_text("Findings are not known. The rules could not be run.")


def test_new_findings_appear_without_moving_anything(viewer: Viewer, many: str) -> None:
    told: list[dict[str, Any]] = [made_up(0, module="head")]
    asked: list[int] = []
    tell(viewer.page, lambda: asked.append(len(told)) or {"findings": told, "is_complete": len(told) > 1})  # type: ignore[func-returns-value]
    viewer.open(many)
    expect(rows(viewer)).to_have_count(1)
    expect(viewer.node("head#0")).to_be_visible()
    viewer.slider.focus()
    viewer.settle()
    before = viewer.page.evaluate(CAMERA)
    assert before
    told.append(made_up(1, module="layers", severity="error"))
    expect(rows(viewer)).to_have_count(2)
    expect(badge(viewer, "layers#0")).to_have_text("Rule 1")
    expect(viewer.page.locator(".findings [role=status]")).to_have_text("New: 1 finding, rule 1")
    expect(viewer.slider).to_be_focused()
    assert viewer.page.evaluate(CAMERA) == before
    assert asked[-1] == 2


@pytest.mark.parametrize("size", thinned([(1440, 900), (480, 300)], 1), ids=lambda size: "x".join(map(str, size)))
def test_sixty_findings_of_four_hundred_modules_can_be_reached(
    viewer: Viewer, many: str, size: tuple[int, int]
) -> None:
    width, height = size
    viewer.page.set_viewport_size({"width": width, "height": height})
    tell(viewer.page, lambda: {"findings": [made_up(number) for number in range(60)], "left_out": 3})
    viewer.open(many)
    expect(viewer.node("layers#0")).to_be_visible()
    if width < 600:
        viewer.page.get_by_role("button", name="60 findings").click()
        expect(viewer.page.get_by_role("tree", name="Findings")).to_be_focused()
    else:
        expect(viewer.page.locator(".findings-foot")).to_contain_text("3 more are not listed")
    expect(rows(viewer)).to_have_count(60)
    expect(viewer.page.locator('[id="module-layers"]')).to_be_in_viewport()
    expect(viewer.page.locator(".time-finding")).to_have_count(1)
    viewer.page.get_by_role("tree", name="Findings").focus()
    viewer.page.keyboard.press("End")
    expect(rows(viewer).last).to_be_in_viewport()
    viewer.page.keyboard.press("Enter")
    expect_open(viewer, "Deep", "layers")
    expect(viewer.node("layers.59#0")).to_have_attribute("aria-selected", "true")
    expect(card(viewer, "Rule 59")).to_be_in_viewport()


def test_a_place_without_room_for_the_list_has_a_button_to_it(viewer: Viewer, broken: str, logdir: Path) -> None:
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    viewer.open(broken)
    count = len(found(logdir, broken))
    viewer.page.get_by_role("button", name=f"{count} findings").click()
    rows(viewer).first.click()
    expect(viewer.node("stem#0")).to_have_attribute("aria-selected", "true")
    expect(viewer.node("stem#0")).to_be_in_viewport()
    expect(card(viewer, "Input not normalised")).to_be_in_viewport()


def test_two_findings_are_in_sight_where_the_page_is_magnified_twice(viewer: Viewer, broken: str) -> None:
    findings = [made_up(number, kind=f"rule-{number}", module=f"body.{number}") for number in range(4)]
    tell(viewer.page, lambda: {"findings": findings})
    viewer.page.set_viewport_size({"width": 720, "height": 450})
    viewer.open(broken)
    viewer.page.get_by_role("button", name="4 findings").click()
    for number in range(2):
        expect(row(viewer, f"Rule {number}")).to_be_in_viewport(ratio=1)


def test_an_exported_page_shows_the_same(offline: Viewer, tmp_path: Path, broken: str, logdir: Path) -> None:
    path = tmp_path / "page.html"
    export_page(open_run(logdir / broken), path, steps=12)
    offline.page.goto(path.as_uri())
    expect(rows(offline)).to_have_count(roots(logdir, broken))
    expect(badge(offline, "head#0")).to_be_visible()
    unfold(offline)
    row(offline, "NaN or infinity").click()
    expect(offline.readout).to_contain_text(f"step {NAN_FROM}")  # such steps are on the page
    words = offline.panel("head#0").get_by_role("article", name="Finding: NaN or infinity")
    words.get_by_text(ABOUT).click()
    expect(words).to_contain_text("one update can carry it to all parameters")
    words.get_by_role("button", name="Between recorded steps").click()
    expect(words).to_contain_text("The first NaN or infinity makes the next step a recorded one")


def test_a_finding_explains_its_kind_where_it_is_shown(viewer: Viewer, broken: str) -> None:
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url) if "explanation" in request.url else None)
    viewer.open(broken, finding="dead-units@body.1.act#0/output")
    words = card(viewer, "Dead units")
    expect(words.get_by_text(ABOUT)).to_be_visible()
    assert asked == []
    words.get_by_text(ABOUT).click()
    headings = words.locator(".finding-about h4")
    expect(headings).to_have_text(
        [
            "What it means",
            "What to do",
            "When it is not reported, or may be wrong",
            "When it is reported",
            "Severity",
        ]
    )
    expect(words).to_contain_text("Such units get no gradient and never come back")
    words.get_by_role("button", name="units", exact=True).click()
    expect(headings).to_have_text(["Units"])
    back = words.get_by_role("button", name="Back to Dead units")
    expect(back).to_be_focused()
    expect(back).to_be_in_viewport()
    viewer.page.keyboard.press("Enter")
    expect(headings).to_have_count(5)
    expect(words.locator("summary")).to_be_focused()
    assert [one.partition("?")[2] for one in asked] == ["kind=dead-units", "kind=units"]
    assert viewer.complaints == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("<img src=x onerror=alert(1)>&kind=nan", id="markup"),
        pytest.param("units", id="the name of a section"),
    ],
)
def test_a_kind_of_a_rule_of_ones_own_has_no_explanation(kind: str, viewer: Viewer, broken: str) -> None:
    tell(viewer.page, lambda: {"findings": [made_up(0, kind=kind, module="stem")]})
    viewer.open(broken)
    rows(viewer).first.click()
    viewer.page.get_by_text(ABOUT).click()
    expect(viewer.page.locator(".finding-about")).to_contain_text("Nothing is known of this kind")
    assert viewer.page.locator(".finding-card img").count() == 0
    assert [one for one in viewer.complaints if "404" not in one] == []
    viewer.complaints.clear()


def test_an_explanation_is_text_and_nothing_else(viewer: Viewer, broken: str) -> None:
    markup = "<b onclick=alert(1)>x</b>"
    spans = [{"text": markup, "link": "javascript:alert(1)"}, {"text": markup, "style": "<i>", "link": "#units"}]
    table = [[[{"text": "Head"}]], [[{"text": markup, "style": "code"}]]]
    parts = [{"name": markup, "blocks": [{"text": spans}, {"list": [spans]}, {"table": table}]}]
    answer = {"name": "dead-units", "title": markup, "line": "", "is_kind": True, "parts": parts}
    viewer.page.route("**/api/explanation*", lambda route: route.fulfill(json=answer))
    viewer.open(broken, finding="dead-units@body.1.act#0/output")
    about = viewer.page.locator(".finding-about")
    about.get_by_text(ABOUT).click()
    expect(about.locator("td")).to_have_text(markup)
    assert about.locator("a, b, [onclick]").count() == 0
    assert viewer.complaints == []
