import {readFileSync} from 'node:fs';
import {expect, test} from 'vitest';

/** What is written on what. A selected row has the soft accent below it, and all the words that rows have. */
const WRITTEN: readonly [ink: string, surfaces: readonly string[]][] = [
  ['ink', ['canvas', 'surface', 'surface-2', 'surface-3', 'accent-soft']],
  ['ink-2', ['canvas', 'surface', 'surface-2', 'surface-3', 'accent-soft']],
  ['ink-3', ['canvas', 'surface', 'surface-2', 'accent-soft']],
  ['accent', ['surface', 'accent-soft']],
  ['accent-ink', ['accent']],
  ['danger', ['surface', 'danger-soft']],
  ['warn', ['surface', 'warn-soft']],
];

const [light, dark] = readFileSync(new URL('../src/styles/theme.css', import.meta.url), 'utf8')
  .split(/--canvas:/)
  .slice(1)
  .map((block) => coloursIn(`--canvas:${block}`)) as [Map<string, string>, Map<string, string>];

function coloursIn(css: string): Map<string, string> {
  return new Map([...css.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g)].map(([, name, colour]) => [name!, colour!]));
}

/** Relative luminance. Source: WCAG 2.2. */
function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

test.each([
  ['light', light],
  ['dark', dark],
])('the %s theme writes nothing paler than WCAG AA allows', (_, colours) => {
  const pale = WRITTEN.flatMap(([ink, surfaces]) =>
    surfaces
      .map((surface) => [ink, surface, contrast(colours.get(ink)!, colours.get(surface)!)] as const)
      .filter(([, , ratio]) => !(ratio >= 4.5)),
  );
  expect(pale).toEqual([]);
});
