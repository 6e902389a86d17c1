/** The x-ray as `api/xray` and an exported page send it. */

import type {Xray} from '../xray/matrix';
import {arrayOf} from './pack';
import type {Packed} from './pack';
import type {SeriesName} from './types';

export interface StatisticInfo {
  name: string;
  label: string;
  /** It lies between 0 and 1. */
  is_share: boolean;
}

export interface WantedXray {
  /** Null for the first one that the model has. */
  statistic: string | null;
  /** The first and the last step; null for all. */
  from: number | null;
  to: number | null;
  /** Columns, at most. */
  most: number;
  version: string;
}

export interface XrayAnswer extends Xray {
  version: string;
  is_complete: boolean;
  /** Frames of a column. */
  unit: number;
  statistics: StatisticInfo[];
  /** Names of the statistics that the model has. */
  available: string[];
}

export type XrayFacts = Omit<XrayAnswer, 'first' | 'last' | 'codes'>;

export function xrayOf(packed: Packed<unknown>, facts: XrayFacts, prefix = '', codes = 'codes'): XrayAnswer {
  const floats = (name: string): Float64Array => arrayOf(packed, `${prefix}${name}`, Float64Array);
  const signed = arrayOf(packed, `${prefix}${codes}`, Int16Array);
  const cells = new Uint16Array(signed.buffer, signed.byteOffset, signed.length);
  return {...facts, first: floats('first'), last: floats('last'), codes: cells};
}

/** A series, and how unlike its own past it is at a step. */
export interface Change {
  series: SeriesName;
  /** In robust standard deviations. */
  score: number;
  measure: string;
  before: string;
  now: string;
  distance: number | null;
}

export interface Changes {
  step: number;
  /** The last step of the past. */
  since: number;
  /** The highest score at a usual step; null if that is not known. */
  usual: number | null;
  ranked: Change[];
  count: number;
}

/** A series, or a scalar by its name. */
export interface Named {
  series?: SeriesName;
  scalar?: string;
}

export interface Relation extends Named {
  correlation: number;
  /** By how many steps it moves before the target. */
  ahead: number;
  is_beyond_chance: boolean;
}

export interface Related {
  target: string;
  /** In 19 of 20 cases, chance alone gives less. */
  chance: number;
  steps: number;
  spacing: number;
  ranked: Relation[];
  count: number;
  beyond_chance: number;
}

/** How unusual something is at some steps. */
export interface CoOccurrence extends Named {
  measure: string;
  /** In robust standard deviations; negative where it is smaller than at other steps. */
  score: number;
  /** Of the steps, at how many it is beyond what 95 % of the others have; and of the others. */
  share: number;
  elsewhere: number;
  /** For how many steps it was so already. */
  ahead: number;
  is_beyond_chance: boolean;
}

export interface CoOccurrences {
  /** In 19 of 20 cases, chance alone gives a lower score. */
  chance: number;
  steps: number;
  others: number;
  ranked: CoOccurrence[];
  count: number;
  beyond_chance: number;
  /** How often findings are there at those steps. */
  findings: FindingRate[];
}

/** How often a finding is there at some steps, and at the others. */
export interface FindingRate {
  kind: string;
  module: string | null;
  call: number | null;
  path: string | null;
  step: number;
  last_step: number;
  share: number;
  elsewhere: number;
  /** In 19 of 20 cases, chance alone gives no larger share. */
  chance: number;
  is_beyond_chance: boolean;
}

/** A tensor of all calls of a module at a step, as one histogram. */
export interface CallsHistogram {
  step: number;
  calls: number;
  elements: number;
  /** Where the bars, of equal widths, begin and end. */
  low: number;
  high: number;
  counts: number[];
}

/** The steps at which something is above or below a limit. */
export interface Limit {
  of: RelatedTo;
  side: 'above' | 'below';
  value: number;
  /** Of a series, what is compared. */
  measure: string;
}

/** From the first step to the last one, or where a limit is passed. */
export type AskedSteps = readonly [first: number, last: number] | Limit;

/** A scalar by its name, or a series. */
export type RelatedTo = {scalar: string} | SeriesName;
