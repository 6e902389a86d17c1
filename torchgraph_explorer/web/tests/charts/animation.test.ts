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

test('a job that has more to do goes on at later repaints, after the others', () => {
  const frames: FrameRequestCallback[] = [];
  vi.stubGlobal('requestAnimationFrame', (work: FrameRequestCallback) => frames.push(work));
  const done: string[] = [];
  let left = 2;
  schedule({}, () => {
    done.push(`part ${left}`);
    vi.spyOn(performance, 'now').mockReturnValue(done.length * 100);
    return --left > 0;
  });
  schedule({}, () => void done.push('other'));
  for (let frame = 0; frame < 4; frame++) frames.shift()?.(performance.now() - 50);
  vi.restoreAllMocks();
  expect(done).toEqual(['part 2', 'other', 'part 1']);
});
