/** What of the screen stands beside the graph, and how wide. Pure. */

import {PARTS} from '../state/parts';
import type {Part} from '../state/parts';

export interface Screen {
  width: number;
  height: number;
  /** What the user has put away. */
  hidden: readonly Part[];
  pins: number;
  /** What the panels show beside each other: pins, the x-ray, the scalars, other runs. */
  columns: number;
  /** Of the modules, as the user has set it, in pixels. */
  modulesWidth: number;
  /** Of the panels, as the user has set it, as a share of what the modules leave; 0 before that. */
  panelsShare: number;
}

export interface Arrangement {
  /** Where it is put away, a part without room lies over the graph as long as it is open. */
  hasRoom: Record<Part, boolean>;
  /** It has room, and the user has not put it away. */
  isDocked: Record<Part, boolean>;
  /** Of the modules and of the panels, docked or over the graph, in pixels. */
  modulesWidth: number;
  panelsWidth: number;
  /** Bars are lower. */
  isCompact: boolean;
}

/** What remains of a part that was put away at a side. */
export const RAIL_PX = 24;
const LEAST_GRAPH = 300;
const LEAST_PANELS = 264;
const EMPTY_PANELS = 248;
const USUAL_SHARE = 0.52;
/** Two columns beside each other, with the gaps around them. */
const TWO_COLUMNS = 2 * 292 + 3 * 8;
/** Panels without pins show the x-ray; they stand there only where much room is left. */
const AMPLE_GRAPH = 640;
const SMALL = {width: 600, height: 420};
/** A window that is higher than wide, and less wide than this, is that of a phone. */
const PHONE = 480;
const COMPACT = {width: 700, height: 600};
const LEAST_FOR_MODULES = 760;
const LEAST_FOR_STEPS = 180;
const LEAST_FOR_LEGEND = 420;

export function arrange(screen: Screen): Arrangement {
  const {width, height} = screen;
  const modules = modulesHaveRoom(screen);
  const modulesDocked = modules && isShown(screen, 'modules');
  const left = modulesDocked ? screen.modulesWidth : RAIL_PX;
  const panels = panelsHaveRoom(screen);
  const panelsWidth = panels ? dockedPanels(screen, left) : drawnPanels(screen);
  const graph = width - left - (panels && isShown(screen, 'panels') ? panelsWidth : RAIL_PX);
  const isHigh = height >= SMALL.height;
  const hasRoom: Record<Part, boolean> = {
    modules,
    panels,
    header: isHigh && width >= SMALL.width,
    legend: isHigh && graph >= LEAST_FOR_LEGEND,
    steps: height >= LEAST_FOR_STEPS,
  };
  return {
    hasRoom,
    isDocked: Object.fromEntries(PARTS.map((part) => [part, hasRoom[part] && isShown(screen, part)])) as Record<Part, boolean>,
    modulesWidth: modules ? screen.modulesWidth : Math.min(screen.modulesWidth, Math.max(150, 0.6 * width)),
    panelsWidth,
    isCompact: height < COMPACT.height || width < COMPACT.width,
  };
}

function isShown({hidden}: Screen, part: Part): boolean {
  return !hidden.includes(part);
}

function modulesHaveRoom(screen: Screen): boolean {
  const {width, modulesWidth, pins} = screen;
  const beside = !panelsHaveRoom(screen) || !isShown(screen, 'panels') ? RAIL_PX : pins > 0 ? LEAST_PANELS : EMPTY_PANELS;
  return width >= LEAST_FOR_MODULES && width - modulesWidth - beside >= LEAST_GRAPH;
}

function panelsHaveRoom({width, pins, modulesWidth}: Screen): boolean {
  if (width < SMALL.width) return false;
  return pins > 0 ? width - RAIL_PX - LEAST_PANELS >= LEAST_GRAPH : width - modulesWidth - EMPTY_PANELS >= AMPLE_GRAPH;
}

function dockedPanels({width, pins, columns, panelsShare}: Screen, left: number): number {
  const room = width - left;
  const wanted = panelsShare > 0 ? panelsShare * room : Math.max(USUAL_SHARE * room, columns > 1 ? TWO_COLUMNS : 0);
  if (pins === 0) return Math.max(EMPTY_PANELS, Math.min(wanted, room - AMPLE_GRAPH));
  return Math.max(LEAST_PANELS, Math.min(wanted, room - LEAST_GRAPH));
}

/** The width of panels that lie over the graph: all of it on a phone. The x-ray, which they show without pins, takes what it needs. */
function drawnPanels({width, height, pins}: Screen): number {
  if (width < PHONE && height > width) return width - 2 * RAIL_PX;
  return Math.min(Math.max(pins > 0 ? 250 : 560, 0.6 * width), width - 2 * RAIL_PX);
}
