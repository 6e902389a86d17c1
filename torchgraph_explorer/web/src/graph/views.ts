/** Where to look: views of a drawing in which what was asked for is in sight. Pixels, y downwards; no DOM. */

import type {Area, Box, View} from './geometry';

/** What is to be seen of a drawing. */
export interface Subject {
  /** All of it, in its own pixels. */
  drawing: Area;
  /** What was asked for: a node, or where the drawing begins. */
  focus: Area;
}

/** What it is to be seen in. */
export interface Window {
  pane: Box;
  /** What lies over the pane and hides what is below. */
  covered: readonly Area[];
}

/** Below this scale the writing on a node cannot be read. */
export const READABLE = 0.6;
const LARGEST = 1.5;
/** A room smaller than this shows nothing: then rather something is covered. */
const LEAST_ROOM = {width: 90, height: 60};
const MARGIN = {least: 8, most: 24, share: 0.05};

/**
 * The view for what was just opened or asked for: the whole drawing, if it can be read then, else the focus at a scale at which
 * it can, with as little empty space around as there can be.
 */
export function viewFor(subject: Subject, window: Window): View {
  const all = fit(subject.drawing, window);
  return all.k >= READABLE ? all : close(subject, window, partScale(subject.drawing, largestRoom(window)));
}

/**
 * The view of the whole drawing, as large as it gets but not blown up: in the middle of the pane, or, where it would be covered
 * there, of the free room that is best for it.
 */
export function fit(drawing: Area, window: Window): View {
  const central = into(drawing, inner(window.pane, whole(window.pane)));
  if (!window.covered.some((cover) => overlaps(seen(drawing, central), cover))) return central;
  const views = rooms(window).map((room) => into(drawing, room));
  return views.reduce((best, view) => (view.k > best.k + 1e-9 ? view : best));
}

/** The view of a drawing in the middle of a room, all of it and as large as it gets there. */
function into(drawing: Area, room: Area): View {
  const k = Math.min(scaleInto(drawing, room), LARGEST);
  const x = middle(room.left, room.right) - k * middle(drawing.left, drawing.right);
  return {k, x, y: middle(room.top, room.bottom) - k * middle(drawing.top, drawing.bottom)};
}

/** `view` itself where the focus is in sight and can be read, else the nearest scale at which it can, with it in the middle. */
export function reveal(subject: Subject, window: Window, view: View): View {
  if (view.k >= READABLE && isInSight(subject.focus, window, view)) return view;
  return close(subject, window, Math.max(view.k, READABLE));
}

/** Is all of an area of the drawing within the pane, and not covered? */
export function isInSight(area: Area, window: Window, view: View): boolean {
  const onScreen = seen(area, view);
  return freeAreas(window).some((room) => contains(room, onScreen));
}

/** An area of the drawing as it stands in the pane. */
export function seen({left, top, right, bottom}: Area, {k, x, y}: View): Area {
  return {left: k * left + x, top: k * top + y, right: k * right + x, bottom: k * bottom + y};
}

/** The focus in the middle of the largest room, but no further from the drawing's rim than needed. */
function close({drawing, focus}: Subject, window: Window, wanted: number): View {
  const room = largestRoom(window);
  const k = Math.min(wanted, Math.max(READABLE, scaleInto(focus, room)));
  const across = shift([drawing.left, drawing.right], [focus.left, focus.right], [room.left, room.right], k);
  return {k, x: across, y: shift([drawing.top, drawing.bottom], [focus.top, focus.bottom], [room.top, room.bottom], k)};
}

type Span = readonly [number, number];

/** The shift, in one direction, that shows `focus` within `room` and as much of `all` as there can be besides. */
function shift(all: Span, focus: Span, room: Span, k: number): number {
  const length = room[1] - room[0];
  if (k * (all[1] - all[0]) <= length) return middle(...room) - k * middle(...all);
  const isTooLong = k * (focus[1] - focus[0]) > length;
  const wanted = isTooLong ? room[0] - k * focus[0] : middle(...room) - k * middle(...focus);
  return Math.min(room[0] - k * all[0], Math.max(room[1] - k * all[1], wanted));
}

const ROWS_PX = 400;
const EASY_TO_READ = 0.7;

/** The scale for a part of a drawing: its whole width and some of its rows, if they can be read, and not blown up. */
function partScale(drawing: Area, room: Area): number {
  const across = (room.right - room.left) / Math.max(1, drawing.right - drawing.left);
  const down = Math.max(EASY_TO_READ, (room.bottom - room.top) / ROWS_PX);
  return Math.max(READABLE, Math.min(1, across, down));
}

function scaleInto(area: Area, room: Area): number {
  const across = (room.right - room.left) / Math.max(1, area.right - area.left);
  return Math.min(across, (room.bottom - room.top) / Math.max(1, area.bottom - area.top));
}

/** The free areas without a margin, if one of them has room for something; else the pane. */
function rooms(window: Window): Area[] {
  const found = freeAreas(window).map((area) => inner(window.pane, area));
  const spacious = found.filter(hasRoom);
  return spacious.length > 0 ? spacious : [inner(window.pane, whole(window.pane))];
}

function inner(pane: Box, {left, top, right, bottom}: Area): Area {
  const margin = Math.min(MARGIN.most, Math.max(MARGIN.least, MARGIN.share * Math.min(pane.width, pane.height)));
  const from = {left: left + margin, top: top + margin};
  return {...from, right: Math.max(from.left + 1, right - margin), bottom: Math.max(from.top + 1, bottom - margin)};
}

function hasRoom({left, top, right, bottom}: Area): boolean {
  return right - left >= LEAST_ROOM.width && bottom - top >= LEAST_ROOM.height;
}

function largestRoom(window: Window): Area {
  return rooms(window).reduce((best, room) => (sizeOf(room) > sizeOf(best) ? room : best));
}

/** The largest rectangles of the pane that nothing covers; they may overlap. */
export function freeAreas({pane, covered}: Window): Area[] {
  const split = (free: Area[], cover: Area): Area[] => free.flatMap((area) => (overlaps(area, cover) ? around(area, cover) : [area]));
  const all = covered.reduce(split, [whole(pane)]);
  return all.filter((area, i) => !all.some((other, j) => i !== j && contains(other, area) && (j < i || !contains(area, other))));
}

/** What of `area` is left, right, above and below of `cover`. */
function around(area: Area, cover: Area): Area[] {
  return [
    {...area, right: Math.min(area.right, cover.left)},
    {...area, left: Math.max(area.left, cover.right)},
    {...area, bottom: Math.min(area.bottom, cover.top)},
    {...area, top: Math.max(area.top, cover.bottom)},
  ].filter((one) => sizeOf(one) > 0 && one.right > one.left);
}

function overlaps(one: Area, other: Area): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

function contains(outer: Area, inner: Area): boolean {
  return outer.left <= inner.left && outer.right >= inner.right && outer.top <= inner.top && outer.bottom >= inner.bottom;
}

function whole({width, height}: Box): Area {
  return {left: 0, top: 0, right: width, bottom: height};
}

function sizeOf({left, top, right, bottom}: Area): number {
  return (right - left) * (bottom - top);
}

function middle(low: number, high: number): number {
  return (low + high) / 2;
}
