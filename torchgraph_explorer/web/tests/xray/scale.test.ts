import {describe, expect, test} from 'vitest';

import {BAD} from '../../src/xray/codes';
import {codeOf} from './codes';
import {colourTable, xrayScale} from '../../src/xray/scale';
import type {Rgb} from '../../src/xray/scale';

const RAMP: Rgb[] = [[0, 0, 0], [100, 200, 50], [200, 0, 250]];
const RED: Rgb = [255, 0, 0];
const GREY: Rgb = [99, 99, 99];

/** Red, green, blue and opacity of a code. */
function coloured(table: Uint32Array, code: number): number[] {
  return [...new Uint8Array(new Uint32Array([table[code]!]).buffer)];
}

describe('the colour of a cell', () => {
  const shares = colourTable({low: 0, high: 1, isLog: false, at: (value) => value}, RAMP, {bad: RED, zero: GREY});

  test.each([
    [0, [0, 0, 0, 255]],
    [0.25, [50, 100, 25, 255]],
    [0.5, [100, 200, 50, 255]],
    [0.75, [150, 100, 150, 255]],
    [1, [200, 0, 250, 255]],
  ])('of the share %s lies between the stops', (share, expected) => {
    expect(coloured(shares, codeOf(share))).toEqual(expected);
  });

  test('is none without a number, and its own where the module has NaN', () => {
    expect(coloured(shares, 0)).toEqual([0, 0, 0, 0]);
    expect(coloured(shares, BAD)).toEqual([255, 0, 0, 255]);
    expect(coloured(shares, BAD | codeOf(0.5))).toEqual([255, 0, 0, 255]);
  });

  test('of zero is its own on a logarithmic scale, and not that of a small number', () => {
    const table = colourTable(xrayScale(Uint16Array.from([0, 1e-6, 1e-3].map(codeOf)), false), RAMP, {bad: RED, zero: GREY});
    expect(coloured(table, codeOf(0))).toEqual([99, 99, 99, 255]);
    expect(coloured(table, codeOf(1e-9))).toEqual([0, 0, 0, 255]);
  });

  test('is none without a scale', () => {
    expect(new Set(colourTable(null, RAMP, {bad: RED, zero: GREY}).subarray(0, BAD))).toEqual(new Set([0]));
  });

  test('is that of an end beyond the usual numbers', () => {
    const usual = Uint16Array.from({length: 5000}, (_, i) => codeOf(1 + i / 5000));
    const table = colourTable(xrayScale(usual, false), RAMP, {bad: RED, zero: GREY});
    expect(coloured(table, codeOf(1e-6))).toEqual([0, 0, 0, 255]);
    expect(coloured(table, codeOf(1e6))).toEqual([200, 0, 250, 255]);
  });
});
