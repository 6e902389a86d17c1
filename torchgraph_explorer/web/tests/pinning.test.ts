import {batch} from '@preact/signals';
import {afterEach, expect, test, vi} from 'vitest';

const SIZES = {wide: {innerWidth: 1440, innerHeight: 900}, small: {innerWidth: 480, innerHeight: 300}};

/** The modules of the view, new, in a window of that size. */
async function view(size: keyof typeof SIZES) {
  vi.resetModules();
  vi.stubGlobal('window', SIZES[size]);
  vi.stubGlobal('document', {documentElement: {dataset: {}}});
  vi.stubGlobal('localStorage', {getItem: () => null, setItem: () => undefined});
  const [{togglePin, lookAtNode}, {isShown, toggle}, {pins}] = await Promise.all([
    import('../src/view/pinning'),
    import('../src/view/layout/sides'),
    import('../src/view/state/choices'),
  ]);
  return {togglePin, lookAtNode, isShown, toggle, pins};
}

afterEach(() => void vi.unstubAllGlobals());

test.each(['wide', 'small'] as const)('unpinning and pinning at once brings back panels that were put away, %s', async (size) => {
  const {togglePin, isShown, toggle, pins} = await view(size);
  togglePin('stem#0');
  expect(isShown('panels')).toBe(true);
  toggle('panels');
  expect(isShown('panels')).toBe(false);
  batch(() => {
    togglePin('stem#0');
    togglePin('stem#0');
  });
  expect(pins.value.map(({key}) => key)).toEqual(['stem#0']);
  expect(isShown('panels')).toBe(true);
});

test('unpinning leaves panels put away', async () => {
  const {togglePin, isShown, toggle} = await view('wide');
  togglePin('stem#0');
  toggle('panels');
  togglePin('stem#0');
  expect(isShown('panels')).toBe(false);
});

test('looks around take the place of each other, and leave what was pinned', async () => {
  const {togglePin, lookAtNode, pins} = await view('wide');
  togglePin('stem#0');
  for (const key of ['a#0', 'b#0', 'stem#0', 'c#0']) lookAtNode(key);
  expect(pins.value.map(({key, colour}) => [key, colour])).toEqual([['stem#0', 0], ['c#0', 1]]);
});

test('what was looked at is kept by pinning it', async () => {
  const {togglePin, lookAtNode, pins} = await view('wide');
  lookAtNode('a#0');
  togglePin('a#0');
  lookAtNode('b#0');
  expect(pins.value.map(({key}) => key)).toEqual(['a#0', 'b#0']);
  togglePin('a#0');
  expect(pins.value.map(({key}) => key)).toEqual(['b#0']);
});
