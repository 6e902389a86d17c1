"""How long each frame takes while the pointer moves, in milliseconds."""

from __future__ import annotations

from tests.browser.page import Viewer

FRAMES = 24

MOVING = """([frames, type, path, buttons]) => new Promise((done) => {
  const times = [];
  let before = performance.now();
  const isPointer = type.startsWith('pointer');
  const target = isPointer ? document.elementFromPoint(path.x, path.y) : window;
  const send = (share) => {
    const [clientX, clientY] = [path.x + share * path.width, path.y + share * path.height];
    const what = {bubbles: true, button: 0, buttons, view: window, clientX, clientY};
    target.dispatchEvent(isPointer ? new PointerEvent(type, what) : new MouseEvent(type, what));
  };
  const tick = (now) => {
    times.push(now - before);
    before = now;
    if (times.length > frames) return done(times.slice(1));
    send(times.length / frames);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})"""


def panning(viewer: Viewer) -> list[float]:
    """Drag the drawing, and see how long each frame takes."""
    box = viewer.page.locator(".canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + box["height"] - 20
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    path = {"x": x, "y": y, "width": 300, "height": -400}
    before = viewer.page.locator(".canvas > g").get_attribute("transform")
    times: list[float] = viewer.page.evaluate(MOVING, [FRAMES, "mousemove", path, 1])
    viewer.page.mouse.up()
    assert viewer.page.locator(".canvas > g").get_attribute("transform") != before
    return times


def moving_over_a_strip(viewer: Viewer, name: str, *, buttons: int) -> list[float]:
    """Move over a strip, with a button pressed or not, and see how long each frame takes."""
    box = viewer.chart(name).bounding_box()
    assert box is not None
    path = {"x": box["x"] + 50, "y": box["y"] + 50, "width": 100, "height": 0}
    times: list[float] = viewer.page.evaluate(MOVING, [FRAMES, "pointermove", path, buttons])
    return times
