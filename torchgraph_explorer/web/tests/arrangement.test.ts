import {describe, expect, test} from 'vitest';
import {PARTS} from '../src/view/state/parts';
import type {Part} from '../src/view/state/parts';
import {arrange, RAIL_PX} from '../src/view/layout/arrangement';
import type {Screen} from '../src/view/layout/arrangement';

function screen(width: number, height: number, more: Partial<Screen> = {}): Screen {
  return {width, height, hidden: [], pins: 0, columns: more.pins ?? 0, modulesWidth: 248, panelsShare: 0, ...more};
}

function docked(one: Screen): Part[] {
  const {isDocked} = arrange(one);
  return PARTS.filter((part) => isDocked[part]);
}

/** What the modules and the panels leave of the width. */
function graphWidth(one: Screen): number {
  const {isDocked, modulesWidth, panelsWidth} = arrange(one);
  return one.width - (isDocked.modules ? modulesWidth : RAIL_PX) - (isDocked.panels ? panelsWidth : RAIL_PX);
}

const WIDTHS = Array.from({length: 120}, (_, i) => 240 + 20 * i);

describe('what stands beside the graph', () => {
  test.each([
    [320, 240, 0, ['steps']],
    [480, 300, 0, ['steps']],
    [480, 300, 3, ['steps']],
    [300, 480, 1, ['steps']],
    [640, 480, 0, ['header', 'legend', 'steps']],
    [640, 480, 1, ['panels', 'header', 'steps']],
    [800, 600, 0, ['modules', 'header', 'legend', 'steps']],
    [800, 600, 1, ['panels', 'header', 'steps']],
    [1024, 600, 0, ['modules', 'header', 'legend', 'steps']],
    [1024, 600, 1, ['modules', 'panels', 'header', 'steps']],
    [1440, 900, 0, [...PARTS]],
    [2560, 1440, 2, [...PARTS]],
    [1440, 240, 0, ['modules', 'panels', 'steps']],
    [480, 150, 0, []],
  ])('at %i×%i with %i pins', (width, height, pins, parts) => expect(docked(screen(width, height, {pins}))).toEqual(parts));

  test('leaves the graph the most of the width without pins, and 300 pixels with some, however wide the sides were set', () => {
    for (const width of WIDTHS) {
      for (const modulesWidth of [160, 248, 480]) {
        expect(graphWidth(screen(width, 700, {modulesWidth}))).toBeGreaterThanOrEqual(Math.min(0.5 * width, 300));
        for (const panelsShare of [0.1, 0.5, 0.95]) {
          expect(graphWidth(screen(width, 700, {modulesWidth, panelsShare, pins: 2}))).toBeGreaterThanOrEqual(Math.min(0.6 * width, 300));
        }
      }
    }
  });

  test('shows the x-ray and a panel beside each other at 1280 pixels, unless the user set another width', () => {
    const one = {pins: 1, columns: 2};
    expect(arrange(screen(1280, 800, one)).panelsWidth).toBe(608);
    expect(graphWidth(screen(1280, 800, one))).toBe(424);
    expect(arrange(screen(1280, 800, {...one, panelsShare: 0.4})).panelsWidth).toBeCloseTo(412.8);
    expect(graphWidth(screen(1024, 800, one))).toBe(300);
  });

  test('does not depend on what was put away, which can be brought back', () => {
    for (const part of PARTS) {
      const one = screen(1440, 900, {hidden: [part], pins: 1});
      expect(docked(one)).toEqual(PARTS.filter((other) => other !== part));
      expect(arrange(one).hasRoom[part]).toBe(true);
    }
  });

  test('on a phone, panels are as wide as the window', () => {
    expect(arrange(screen(390, 844, {pins: 1})).panelsWidth).toBe(390 - 2 * RAIL_PX);
    expect(arrange(screen(479, 300, {pins: 1})).panelsWidth).toBeLessThan(300);
  });

  test('over the graph, modules and panels leave both rails free', () => {
    for (const width of WIDTHS.filter((one) => one < 600)) {
      const {modulesWidth, panelsWidth} = arrange(screen(width, 300, {pins: 1, modulesWidth: 480}));
      expect(Math.max(modulesWidth, panelsWidth)).toBeLessThanOrEqual(width - 2 * RAIL_PX);
    }
  });
});
