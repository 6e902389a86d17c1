/** A heat grid as pixels, ready for an ImageData. */

import {intensity, rimIntensity, type Heat} from './heat';

/** Straight r, g, b, a bytes, row after row from the top. */
export interface Pixels {
  width: number;
  height: number;
  bytes: Uint8ClampedArray<ArrayBuffer>;
}

/** One pixel per row of the grid in height; empty cells stay transparent. */
export function bodyPixels(heat: Heat, table: Uint8ClampedArray, counts: 'linear' | 'log'): Pixels {
  const {columns, grid, shares} = heat;
  const pixels = transparent(columns.right.at(-1) ?? 0, grid.rows);
  for (let column = 0; column < columns.left.length; column++) {
    for (let row = 0; row < grid.rows; row++) {
      const strength = intensity(shares[column * grid.rows + row]!, heat, counts);
      if (strength === 0) continue;
      const colour = table.subarray(Math.round(strength * (table.length / 4 - 1)) * 4);
      run(pixels, {y: grid.rows - 1 - row, from: columns.left[column]!, to: columns.right[column]!}, colour);
    }
  }
  return pixels;
}

/** Two rows: what lies above the axis, and what lies below. Strength is opacity. */
export function rimPixels(heat: Heat, [red, green, blue]: readonly [number, number, number]): Pixels {
  const {columns, above, below} = heat;
  const pixels = transparent(columns.right.at(-1) ?? 0, 2);
  for (let column = 0; column < columns.left.length; column++) {
    const span = {from: columns.left[column]!, to: columns.right[column]!};
    [above, below].forEach((shares, y) => {
      const alpha = Math.round(255 * rimIntensity(shares[column]!));
      if (alpha > 0) run(pixels, {y, ...span}, [red, green, blue, alpha]);
    });
  }
  return pixels;
}

function transparent(width: number, height: number): Pixels {
  return {width, height, bytes: new Uint8ClampedArray(width * height * 4)};
}

function run({bytes, width}: Pixels, {y, from, to}: {y: number; from: number; to: number}, colour: ArrayLike<number>): void {
  for (let at = (y * width + from) * 4; at < (y * width + to) * 4; at += 4) {
    bytes[at] = colour[0]!;
    bytes[at + 1] = colour[1]!;
    bytes[at + 2] = colour[2]!;
    bytes[at + 3] = colour[3]!;
  }
}
