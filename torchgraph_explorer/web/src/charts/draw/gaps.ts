/** Columns without a finite element: hatched in red where all was NaN or infinite, in grey where nothing was recorded. */

import type {Box} from '../layout';
import type {Palette} from '../palette';
import type {Scene} from '../scene';
import type {Context} from './context';

interface Hatch {
  colour: string;
  /** Pixels between two lines, and how wide they are. */
  gap: number;
  width: number;
  /** Opacity of what lies between the lines. */
  wash: number;
  isFalling: boolean;
}

/** Paints both kinds of columns over the whole height of the plot. */
export function drawGaps(context: Context, {columns, lost, missing, layout: {plot}}: Scene, palette: Palette): void {
  const boxOf = ([first, last]: readonly [number, number]): Box => {
    const left = columns.left[first]!;
    return {...plot, x: plot.x + left, width: columns.right[last]! - left};
  };
  for (const run of runsOf(missing)) drawHatch(context, boxOf(run), {colour: palette.outline, gap: 7, width: 1, wash: 0, isFalling: false});
  for (const run of runsOf(lost)) drawHatch(context, boxOf(run), lostHatch(palette));
}

/** How what is lost to NaN and infinity looks. */
export function lostHatch({nonfinite}: Palette): Hatch {
  return {colour: nonfinite, gap: 6, width: 1.5, wash: 0.14, isFalling: true};
}

/** Ascending numbers as runs of neighbours: the first and the last of each. */
export function runsOf(numbers: readonly number[]): [number, number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/** Hatches a box. Lines go on from one box to the next. */
export function drawHatch(context: Context, {x, y, width, height}: Box, {colour, gap, width: thickness, wash, isFalling}: Hatch): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = wash;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 0.75;
  context.lineWidth = thickness;
  context.beginPath();
  const step = gap * Math.SQRT2;
  for (let at = Math.floor((x - height) / step) * step; at < x + width + height; at += step) {
    context.moveTo(at, isFalling ? y : y + height);
    context.lineTo(at + height, isFalling ? y + height : y);
  }
  context.stroke();
  context.restore();
}
