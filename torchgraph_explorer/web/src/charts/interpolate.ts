/** Straight lines between known points. */

/** The value at `x` between the points `xs`, ascending, and `ys`; NaN outside of them. */
export function interpolated(xs: ArrayLike<number>, ys: ArrayLike<number>, x: number): number {
  const last = xs.length - 1;
  if (last < 0 || !(x >= xs[0]! && x <= xs[last]!)) return NaN;
  let [low, high] = [0, last];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle - 1;
  }
  if (xs[low] === x || low === last) return ys[low]!;
  const share = (x - xs[low]!) / (xs[low + 1]! - xs[low]!);
  return ys[low]! + share * (ys[low + 1]! - ys[low]!);
}
