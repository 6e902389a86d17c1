/** Where the pictures of a tensor stand, and the cells in them. Pixels, y downwards. Pure. */

export interface Box {
  width: number;
  height: number;
}

/** So many pictures of so many cells. */
export interface Counts {
  rows: number;
  columns: number;
  facets: number;
}

export interface Grid {
  /** Of a cell. */
  cellWidth: number;
  cellHeight: number;
  /** Pictures beside each other. */
  across: number;
  /** Of the whole drawing. */
  width: number;
  height: number;
  /** From a picture's left side to the next one's, and from its top. */
  stepX: number;
  stepY: number;
  /** Height of the line above a picture that names it. */
  label: number;
}

const LARGEST = 26;
const GAP = 8;
const LABEL = 14;
/** A picture narrower than this has no room for its name. */
const LEAST_NAMED = 14;
/** Cells of a picture that is so many times longer than high are not square, so that it can be seen. */
const ELONGATED = 6;

/** The largest cells with which everything fits; if nothing does, the smallest ones, beyond the box. */
export function gridOf({rows, columns, facets}: Counts, box: Box): Grid {
  const label = facets > 1 ? LABEL : 0;
  let best: Grid | null = null;
  for (let across = 1; across <= Math.max(1, facets); across++) {
    const found = placed({rows, columns, facets}, box, across, label);
    if (best === null || isBetter(found, best, box)) best = found;
  }
  return best as Grid;
}

function placed({rows, columns, facets}: Counts, box: Box, across: number, label: number): Grid {
  const down = Math.ceil(Math.max(1, facets) / across);
  const fitX = (box.width - (across - 1) * GAP) / across / Math.max(1, columns);
  const fitY = ((box.height - (down - 1) * GAP) / down - label) / Math.max(1, rows);
  const cellWidth = whole(Math.min(fitX, isLong(columns, rows) ? LARGEST : fitY));
  const cellHeight = isLong(rows, columns) || isLong(columns, rows) ? whole(fitY) : Math.min(cellWidth, whole(fitY));
  const sides = isLong(rows, columns) ? [whole(fitX), cellHeight] : [cellWidth, isLong(columns, rows) ? cellHeight : cellWidth];
  const [width, height] = sides as [number, number];
  const [stepX, stepY] = [Math.max(columns * width, label > 0 ? LEAST_NAMED : 0) + GAP, rows * height + GAP + label];
  return {cellWidth: width, cellHeight: height, across, width: across * stepX - GAP, height: down * stepY - GAP, stepX, stepY, label};
}

function isLong(one: number, other: number): boolean {
  return one > ELONGATED * other && one > 32;
}

function whole(size: number): number {
  return Math.max(1, Math.min(LARGEST, Math.floor(size)));
}

function isBetter(one: Grid, other: Grid, box: Box): boolean {
  const fits = (grid: Grid): boolean => grid.width <= box.width && grid.height <= box.height;
  if (fits(one) !== fits(other)) return fits(one);
  if (!fits(one)) return one.width <= box.width && one.height < other.height;
  return one.cellWidth * one.cellHeight > other.cellWidth * other.cellHeight;
}

export interface Cell {
  facet: number;
  row: number;
  column: number;
}

/** The left top corner of a cell. */
export function cornerOf(grid: Grid, {facet, row, column}: Cell): {x: number; y: number} {
  const x = (facet % grid.across) * grid.stepX + column * grid.cellWidth;
  return {x, y: Math.floor(facet / grid.across) * grid.stepY + grid.label + row * grid.cellHeight};
}

/** The cell at a point; null beside all pictures. */
export function cellAt(grid: Grid, {rows, columns, facets}: Counts, x: number, y: number): Cell | null {
  const [across, down] = [Math.floor(x / grid.stepX), Math.floor(y / grid.stepY)];
  const facet = down * grid.across + across;
  const column = Math.floor((x - across * grid.stepX) / grid.cellWidth);
  const row = Math.floor((y - down * grid.stepY - grid.label) / grid.cellHeight);
  const isInside = across >= 0 && across < grid.across && facet >= 0 && facet < facets && column >= 0 && column < columns && row >= 0 && row < rows;
  return isInside ? {facet, row, column} : null;
}

/** The cell that an arrow key leads to, from picture to picture at their sides. */
export function neighbour(cell: Cell, {rows, columns, facets}: Counts, across: number, key: string): Cell {
  const [dx, dy] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[key] ?? [0, 0];
  let {facet, row, column} = {facet: cell.facet, row: cell.row + (dy as number), column: cell.column + (dx as number)};
  const moves: [boolean, number, () => void][] = [
    [column < 0, -1, () => (column = columns - 1)],
    [column >= columns, 1, () => (column = 0)],
    [row < 0, -across, () => (row = rows - 1)],
    [row >= rows, across, () => (row = 0)],
  ];
  for (const [isOut, by, enter] of moves) {
    if (!isOut) continue;
    if (facet + by < 0 || facet + by >= facets) return cell;
    facet += by;
    enter();
  }
  return {facet, row, column};
}
