import {describe, expect, test} from 'vitest';
import {fit, viewFor, freeAreas, isInSight, READABLE, reveal, seen} from '../src/graph/views';
import type {Subject, Window} from '../src/graph/views';
import type {Area, View} from '../src/graph/geometry';

const NEAR = 1e-6;

/** Numbers from 0 to 1, the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

function box(left: number, top: number, width: number, height: number): Area {
  return {left, top, right: left + width, bottom: top + height};
}

interface Case {
  subject: Subject;
  window: Window;
  view: View;
}

/** A drawing of 60 to 6,000 pixels with a node in it, in a pane of 150 to 2,500, some of which is covered or not. */
function cases(count: number, withCovers: boolean): Case[] {
  const next = random(withCovers ? 7 : 11);
  const between = (low: number, high: number): number => low + next() * (high - low);
  return Array.from({length: count}, () => {
    const [width, height] = [60 * 10 ** between(0, 2), 60 * 10 ** between(0, 2)];
    const node = {width: Math.min(width, between(60, 270)), height: Math.min(height, between(30, 60))};
    const pane = {width: between(150, 2500), height: between(120, 1500)};
    const drawer = box(0, 0, pane.width * between(0.2, 0.6), pane.height);
    const buttons = box(pane.width - 36, pane.height - 92, 28, 84);
    const focus = box(between(0, width - node.width), between(0, height - node.height), node.width, node.height);
    const k = 2 ** between(-3, 1.5);
    return {
      subject: {drawing: box(0, 0, width, height), focus},
      window: {pane, covered: withCovers ? [drawer, buttons].slice(0, 1 + Math.round(next())) : []},
      view: {k, x: pane.width * between(-0.2, 1.1) - k * focus.left, y: pane.height * between(-0.2, 1.1) - k * focus.top},
    };
  });
}

const ALL = [...cases(1000, false), ...cases(1000, true)];

function failing(all: readonly Case[], holds: (one: Case) => boolean): Case[] {
  return all.filter((one) => !holds(one)).slice(0, 3);
}

/** How far the drawing is from the pane's sides, inwards; negative where it is cut there. */
function gaps({subject, window}: Case, view: View): {left: number; right: number; top: number; bottom: number} {
  const at = seen(subject.drawing, view);
  return {left: at.left, right: window.pane.width - at.right, top: at.top, bottom: window.pane.height - at.bottom};
}

const margin = ({window: {pane}}: Case): number => Math.min(24, Math.max(8, 0.05 * Math.min(pane.width, pane.height)));

/** Is there room beside what is covered, so that what is asked for can be seen at all? */
const hasRoom = (one: Case): boolean =>
  freeAreas(one.window).some((free) => {
    const inner = {width: free.right - free.left - 2 * margin(one), height: free.bottom - free.top - 2 * margin(one)};
    return inner.width >= 90 && inner.height >= 60;
  });

/** Is there room for any node, at the smallest scale that can be read? */
const isRoomy = (one: Case): boolean => freeAreas(one.window).some((free) => free.right - free.left > 0.6 * 270 + 48 && free.bottom - free.top > 0.6 * 60 + 48);

const fitsWhole = (one: Case): boolean => fit(one.subject.drawing, one.window).k >= READABLE;

describe('framing what was opened or asked for, in 2,000 panes', () => {
  test('shows all of the drawing, covered by nothing, where that can be read', () => {
    const whole = ALL.filter((one) => fitsWhole(one) && hasRoom(one));
    expect(whole.length).toBeGreaterThan(200);
    expect(failing(whole, (one) => isInSight(one.subject.drawing, one.window, viewFor(one.subject, one.window)))).toEqual([]);
  });

  test('is never too small to be read, nor blown up', () => {
    expect(failing(ALL, (one) => viewFor(one.subject, one.window).k >= READABLE - NEAR)).toEqual([]);
    expect(failing(ALL, (one) => viewFor(one.subject, one.window).k <= 1.5)).toEqual([]);
  });

  test('shows the node that was asked for, if there is room for it', () => {
    const small = ALL.filter(isRoomy);
    expect(small.length).toBeGreaterThan(1000);
    expect(failing(small, (one) => isInSight(one.subject.focus, one.window, viewFor(one.subject, one.window)))).toEqual([]);
  });

  test('leaves no side empty while another one is cut', () => {
    const free = ALL.filter(({window}) => window.covered.length === 0);
    const isTight = (one: Case, low: number, high: number): boolean => {
      const isCut = low < -NEAR || high < -NEAR;
      return isCut ? Math.max(low, high) <= margin(one) + NEAR : Math.abs(low - high) <= margin(one);
    };
    expect(
      failing(free, (one) => {
        const {left, right, top, bottom} = gaps(one, viewFor(one.subject, one.window));
        return isTight(one, left, right) && isTight(one, top, bottom);
      }),
    ).toEqual([]);
  });

  test('keeps a margin where all of it is in sight', () => {
    const whole = ALL.filter((one) => one.window.covered.length === 0 && fitsWhole(one));
    expect(failing(whole, (one) => Math.min(...Object.values(gaps(one, viewFor(one.subject, one.window)))) >= margin(one) - NEAR)).toEqual([]);
  });

  test('of a long drawing shows its whole width, if it can be read then', () => {
    const long = {drawing: box(0, 0, 400, 30_000), focus: box(150, 0, 100, 30)};
    const view = viewFor(long, {pane: {width: 900, height: 600}, covered: []});
    expect(view).toEqual({k: 1, x: 250, y: 24});
    expect(viewFor(long, {pane: {width: 300, height: 600}, covered: []}).k).toBeCloseTo(270 / 400);
  });
});

describe('revealing a node to which one has walked', () => {
  test('moves nothing where it is in sight and can be read', () => {
    const inSight = ALL.filter((one) => one.view.k >= READABLE && isInSight(one.subject.focus, one.window, one.view));
    expect(inSight.length).toBeGreaterThan(50);
    expect(failing(inSight, (one) => reveal(one.subject, one.window, one.view) === one.view)).toEqual([]);
  });

  test('brings it into sight, at no larger scale than that of the user', () => {
    const elsewhere = ALL.filter((one) => isRoomy(one) && !isInSight(one.subject.focus, one.window, one.view));
    expect(elsewhere.length).toBeGreaterThan(1000);
    expect(failing(elsewhere, ({subject, window, view}) => isInSight(subject.focus, window, reveal(subject, window, view)))).toEqual([]);
    expect(failing(elsewhere, ({subject, window, view}) => reveal(subject, window, view).k <= Math.max(view.k, READABLE))).toEqual([]);
  });

  test('keeps the scale of the user where the node has room at that', () => {
    const [subject, window] = [{drawing: box(0, 0, 400, 9000), focus: box(100, 8000, 100, 40)}, {pane: {width: 600, height: 400}, covered: []}];
    expect(reveal(subject, window, {k: 2, x: 0, y: 0})).toMatchObject({k: 2});
    expect(reveal(subject, window, {k: 0.1, x: 0, y: 0})).toMatchObject({k: READABLE});
  });
});

describe('what nothing covers', () => {
  const pane = {width: 100, height: 80};

  test.each([
    ['nothing', [], [box(0, 0, 100, 80)]],
    ['a drawer', [box(0, 0, 40, 80)], [box(40, 0, 60, 80)]],
    ['a corner', [box(90, 70, 10, 10)], [box(0, 0, 90, 80), box(0, 0, 100, 70)]],
    ['a drawer and a corner', [box(0, 0, 40, 80), box(90, 70, 10, 10)], [box(40, 0, 50, 80), box(40, 0, 60, 70)]],
    ['something outside', [box(200, 0, 40, 80)], [box(0, 0, 100, 80)]],
    ['everything', [box(-5, -5, 200, 200)], []],
  ])('beside %s', (_, covered, free) => expect(freeAreas({pane, covered})).toEqual(free));

  test('is free, and nothing larger is', () => {
    for (const {window} of cases(300, true)) {
      const free = freeAreas(window);
      const hits = (one: Area, other: Area): boolean => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
      expect(free.some((area) => window.covered.some((cover) => hits(area, cover)))).toBe(false);
      expect(free.length).toBeGreaterThan(0);
    }
  });
});

test('a pane that is covered all over is looked at as if it were not', () => {
  const view = viewFor({drawing: box(0, 0, 80, 40), focus: box(0, 0, 80, 40)}, {pane: {width: 200, height: 100}, covered: [box(0, 0, 200, 100)]});
  expect(view).toEqual({k: 1.5, x: 40, y: 20});
});
