import {describe, expect, test} from 'vitest';

import {frameFinder, frameLabel, framePixels, timeAxis, timeTicks, type FrameTimes} from '../../src/charts/timeAxis';

const frames: FrameTimes = {steps: [0, 50, 100, 150], times: [1000, 1010, 1020, 1030], clock: [0, 0, 1, null]};

describe('a time axis', () => {
  test('reaches half a gap beyond the first and the last frame', () => {
    expect(timeAxis('step', frames)).toMatchObject({low: -25, high: 175});
  });

  test('by clock leaves frames without one out', () => {
    expect([...framePixels(timeAxis('clock', frames), 100)]).toEqual([25, 25, 75, NaN]);
  });

  test('by clock falls back to steps when no frame has a clock', () => {
    expect(timeAxis('clock', {...frames, clock: [null, null, null, null]}).kind).toBe('step');
  });

  test('of a single frame has it in the middle', () => {
    expect([...framePixels(timeAxis('step', {steps: [7], times: [0], clock: [null]}), 100)]).toEqual([50]);
  });

  test('without frames is the unit interval', () => {
    expect(timeAxis('step', {steps: [], times: [], clock: []})).toMatchObject({low: 0, high: 1});
  });

  test('has whole steps as ticks, none before the first', () => {
    const ticks = timeTicks(timeAxis('step', {steps: [0, 1], times: [0, 1], clock: [0, 1]}), 8);
    expect(ticks).toEqual([{value: 0, label: '0'}, {value: 1, label: '1'}]);
  });

  test('by wall clock has times as ticks', () => {
    const times = Array.from({length: 10}, (_, i) => 1.7e9 + i * 600);
    const ticks = timeTicks(timeAxis('wall', {steps: times, times, clock: times}), 4);
    expect(ticks.length).toBeGreaterThan(2);
    expect(ticks.every(({label}) => /\d/.test(label))).toBe(true);
  });
});

describe('finding frames', () => {
  test.each([
    [-10, 0],
    [24, 0],
    [26, 2],
    [60, 2],
    [1000, 3],
  ])('pixel %i is nearest to frame %i, the latest of several', (pixel, frame) => {
    expect(frameFinder(Float64Array.of(0, 50, 50, 99)).nearest(pixel)).toBe(frame);
  });

  test('without frames finds none', () => {
    expect(frameFinder(new Float64Array(0)).nearest(3)).toBeNull();
  });
});

test('a frame is called by its step, and by its clock if it has one', () => {
  expect(frameLabel(frames, 2, 'epoch')).toBe('step 100 · epoch 1');
  expect(frameLabel(frames, 3, 'epoch')).toBe('step 150');
});
