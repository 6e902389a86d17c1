/** The gallery's series: ordinary ones and awkward ones. */

import type {SeriesHistory} from '../src/api/types';
import {historyFrom, normal, randomFrom} from './samples';

export interface Exhibit {
  name: string;
  history: SeriesHistory;
}

const SIZE = 1500;

/** A series by frame number; null for a frame without it. */
function over(frames: number, elements: (frame: number, random: () => number) => number[] | null): SeriesHistory {
  const random = randomFrom(1);
  return historyFrom(Array.from({length: frames}, (_, frame) => elements(frame, random)));
}

/** Every exhibit, over so many frames. */
export function exhibits(frames: number): Exhibit[] {
  return [
    {name: 'drifting gaussian', history: over(frames, (i, r) => normal(r, SIZE, {mean: i / 40, std: 1 + Math.sin(i / 15) / 2}))},
    {name: 'relu output', history: over(frames, (i, r) => normal(r, SIZE, {mean: 0.2 - i / 200}).map((v) => Math.max(0, v)))},
    {name: 'constant 3', history: over(frames, () => Array(64).fill(3))},
    {name: 'all zeros', history: over(frames, () => Array(64).fill(0))},
    {name: 'bimodal', history: over(frames, (i, r) => normal(r, SIZE, {std: 0.3}).map((v) => v + (r() < 0.4 ? -2 : i / 60)))},
    {name: 'heavy tails', history: over(frames, (_, r) => normal(r, SIZE).map((v) => v / Math.max(1e-3, r())))},
    {name: 'one exploding frame', history: over(frames, (i, r) => normal(r, SIZE, {std: i === 70 ? 1e8 : 0.02}))},
    {name: 'nan bursts', history: over(frames, (i, r) => normal(r, SIZE).map((v) => (i % 30 > 26 && r() < 0.1 ? NaN : i === 50 ? Infinity : v)))},
    {name: 'all nan', history: over(frames, () => Array(64).fill(NaN))},
    {name: 'empty', history: over(0, () => null)},
    {name: 'single step', history: over(1, (_, r) => normal(r, SIZE))},
    {name: 'begins late', history: over(frames, (i, r) => (i < 50 ? null : normal(r, SIZE, {std: 0.001})))},
    {name: 'gaps', history: over(frames, (i, r) => (i % 20 > 12 || i % 20 === 3 ? null : normal(r, SIZE)))},
    {name: 'integers 0–9', history: over(frames, (_, r) => Array.from({length: SIZE}, () => Math.floor(r() * 10)))},
    {name: 'token ids', history: over(frames, (_, r) => Array.from({length: SIZE}, () => Math.floor(r() ** 3 * 50_000)))},
    {name: 'many magnitudes', history: over(frames, (i, r) => normal(r, SIZE).map((v) => v * 10 ** (-6 * r() - i / 40)))},
    {name: 'tiny gradients', history: over(frames, (i, r) => normal(r, SIZE, {std: 3e-9 * Math.exp(-i / 50)}))},
    {name: 'far from zero', history: over(frames, (_, r) => normal(r, SIZE, {mean: 1000, std: 0.5}))},
  ];
}
