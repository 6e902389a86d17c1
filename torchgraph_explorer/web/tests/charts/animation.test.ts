import {expect, test, vi} from 'vitest';

import {schedule} from '../../src/charts/animation';

test('a job that fails does not keep the others, nor later ones, from being done', () => {
  const frames: FrameRequestCallback[] = [];
  vi.stubGlobal('requestAnimationFrame', (work: FrameRequestCallback) => frames.push(work));
  const show = () => frames.shift()?.(performance.now());
  const done = vi.fn();
  schedule({}, () => {
    throw new Error('no canvas');
  });
  schedule({}, () => done('second'));
  expect(show).toThrow('no canvas');
  show();
  schedule({}, () => done('third'));
  show();
  expect(done.mock.calls).toEqual([['second'], ['third']]);
  expect(frames).toEqual([]);
});
