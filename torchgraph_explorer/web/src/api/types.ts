/** The answers of `server/http_api.md`, as they are. The words are those of `torchgraph_explorer/schema`. */

export type Role = 'input' | 'output' | 'param' | 'attached' | 'edge';
export type Kind = 'value' | 'grad_norm' | 'grad' | 'optimizer_grad' | 'update' | 'update_ratio' | 'time' | 'memory';
export type NodeKind = 'input' | 'output' | 'call' | 'attached';

/** Columns of a statistics matrix, in order. */
export const STATISTICS = [
  'count',
  'sampled',
  'nan',
  'positive_infinity',
  'negative_infinity',
  'zeros',
  'min',
  'max',
  'mean',
  'absolute_mean',
  'std',
  'l2_norm',
] as const;
export type Statistic = (typeof STATISTICS)[number];

export interface RunInfo {
  run: string;
  models: string[];
  /** Seconds since the epoch. */
  first_write: number | null;
  last_write: number | null;
  bytes: number;
  /** What is damaged, as a sentence. */
  error: string | null;
}

export interface Runs {
  logdir: string;
  /** Newest first. */
  runs: RunInfo[];
  /** A model is behind the server, whose gradient flow can be explored. */
  flow?: boolean;
  /** Views of the user's own. */
  views?: OwnViewInfo[];
}

export interface OwnViewInfo {
  name: string;
  /** Another one whenever its file was changed. */
  version: string;
}

export interface Session {
  model: string;
  class_name: string;
  created: number;
  host: string;
  pid: number;
  versions: Record<string, string>;
  log: string[];
  log_freq: string;
  sample_n: number | null;
  bins: number;
  reject_outlier_proportion: number;
  /** Name of the second time axis. */
  clock: string | null;
}

export interface SeriesInfo {
  series: number;
  module: string;
  /** Null for a parameter, which all calls share. */
  call: number | null;
  role: Role;
  path: string;
  kind: Kind;
}

/** What names a tensor's series, in any numbering. */
export type SeriesName = Omit<SeriesInfo, 'series'>;

export interface GraphInfo {
  graph: number;
  first_step: number;
  /** Grows when the same graph is written again. */
  revision: number;
}

export interface Finished {
  time: number;
  notes: string[];
}

/** What ended a step: see `StepFacts` in `torchgraph_explorer/schema`. */
export type StepEnd = 'update' | 'skipped' | 'pass' | 'mark' | 'unfinished';

/** What many steps have in common. */
export interface StepKind {
  /** Its number, to which `frames.kind` refers. */
  kind: number;
  end: StepEnd;
  /** The optimizers that made the update; empty if they are not known. */
  optimizers: string[];
}

/** The frames that are new; one entry per frame in each list. */
export interface NewFrames {
  first: number;
  step: number[];
  time: number[];
  clock: (number | null)[];
  graph: (number | null)[];
  /** Null where it is not known how the step ended. */
  kind: (number | null)[];
  /** Forward passes that belonged to the step, and how many of them were recorded. */
  passes: [passes: number, recorded: number][];
}

/** What is new since the client last asked. */
export interface Updates {
  run: string;
  model: string;
  epoch: number;
  /** The answer has everything; drop what was known before. */
  reset: boolean;
  session: Session | null;
  frames: NewFrames;
  kinds: StepKind[];
  /** The optimizers that made some of the steps, but not all of them. */
  optimizers: string[];
  series: {first: number; items: SeriesInfo[]};
  /** There are more frames or series: ask again for them. */
  more: boolean;
  graphs: GraphInfo[];
  finished: Finished | null;
  /** The training's process has ended without closing the session, as far as the server can tell. */
  stopped?: boolean;
  warnings: string[];
}

export interface TensorInfo {
  path: string;
  /** A null dimension varied. */
  shape: (number | null)[];
  dtype: string;
  requires_grad: boolean;
  /** Sizes that were seen of each null dimension, the first ones that were; empty where they are not known. */
  varied?: number[][];
}

export interface Module {
  /** Qualified; empty for the model itself. */
  name: string;
  class_name: string;
  class_path: string;
  /** (key, value) rows; a fact without a name has an empty key. */
  extra_repr: [string, string][];
  params: TensorInfo[];
  own_params: number;
  total_params: number;
  trainable_params: number;
  /** Parameters of `forward` that take positional arguments, `*args` with its star; empty where they are not known. */
  forward_parameters?: string[];
}

export interface Call {
  /** Index in `ModuleGraph.modules`. */
  module: number;
  call: number;
  /** Index in `ModuleGraph.calls`; null for a call of the model itself. */
  parent: number | null;
  inputs: TensorInfo[];
  outputs: TensorInfo[];
}

export interface Node {
  kind: NodeKind;
  /** Index in `ModuleGraph.calls` of the call whose inside it belongs to; null at the top. */
  inside: number | null;
  /** Index in `ModuleGraph.calls` of the call it stands for. */
  call: number | null;
  tensor: TensorInfo | null;
}

export interface Edge {
  /** Indices in `ModuleGraph.nodes`. */
  source: number;
  target: number;
  /** False where only data goes. */
  gradient: boolean;
  /** The series, of kind `grad_norm`, of what comes back along it; `call` is an index in `ModuleGraph.calls`. Records of earlier releases have none. */
  series?: {call: number; role: Role; path: string}[];
}

export interface ModuleGraph {
  graph: number;
  revision: number;
  first_step: number;
  modules: Module[];
  calls: Call[];
  nodes: Node[];
  edges: Edge[];
}

export interface PlacedNode {
  /** Index in `ModuleGraph.nodes`. */
  node: number;
  /** Centre, pixels, y downwards. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Where it stands for a repeated call: all its nodes, in the order of the calls; else empty or left out. */
  all?: number[];
}

export interface PlacedEdge {
  /** Index in `ModuleGraph.edges`. */
  edge: number;
  /** A start point, then three points per cubic piece; the last is the arrow's tip. */
  points: [number, number][];
  /** All edges that it stands for, if they are several. */
  all?: number[];
  /** It is drawn as a label at its target and a count at its source; `points` is its line where it is asked for. */
  is_stub: boolean;
}

export interface Layout {
  width: number;
  height: number;
  /** A sentence when a simpler layout had to be used. */
  approximate: string | null;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  /** Repeated calls that take turns, as indices in `nodes`. */
  loops?: number[][];
  /** Equal siblings that can be drawn as one node, or are, as indices in `ModuleGraph.nodes`. */
  stacks?: number[][];
}

/**
 * One series over time, from `api/history`: an entry for each frame, or, in a long run, for each bin of neighbouring frames.
 * Histograms hold the non-empty buckets only (see `histogram/buckets.py`).
 */
export interface SeriesHistory {
  /** Steps of a bin; 1 when each entry is a frame. */
  unit: number;
  /** Index of each entry's first frame, ascending, `[n]`. */
  frame: Uint32Array;
  /** Index of its last one. */
  last: Uint32Array;
  /** How many frames are merged in it. */
  merged: Uint32Array;
  /** Index of its first frame with NaN or infinity; means nothing when it has none. */
  bad: Uint32Array;
  /** Of all elements of the entry together, `[n, 12]`, row after row; columns as in `STATISTICS`. */
  statistics: Float32Array;
  /** The least and the most that each statistic was at a frame, `[n, 12]`. */
  lowest: Float32Array;
  highest: Float32Array;
  /** Row `i` has the entries `offsets[i]` up to `offsets[i + 1]` of the two below; `[n + 1]`. */
  offsets: Uint32Array;
  buckets: Int16Array;
  counts: Uint32Array;
  /** So many frames were looked at; those after its last entry that were have nothing. Left out: up to the last entry. */
  until?: number;
}

export interface History {
  epoch: number;
  /** The frame to ask from next time. */
  frames: number;
  /** Steps of a bin. */
  unit: number;
  /** The frame from which on the answer is complete: it replaces what was known from there on. */
  from: number;
  series: Map<number, SeriesHistory>;
}

/** Statistics of every series at one step, from `api/frame`. */
export interface StepStatistics {
  epoch: number;
  step: number;
  /** Series ids, `[n]`. */
  series: Uint32Array;
  /** `[n, 12]`. */
  statistics: Float32Array;
  /** Of an exported page: what holds NaN or infinity there and has no numbers on the page. */
  hidden?: readonly HiddenTensor[];
}

/** A tensor of which only that it holds NaN or infinity is known. */
export interface HiddenTensor extends SeriesName {
  has_nan: boolean;
  has_infinite: boolean;
}

/** Where NaN or infinity came up first. */
export interface FirstNonFinite {
  step: number;
  /** The earliest tensor in the order of execution, and how many of its elements they are; null where that is not known. */
  tensor: (SeriesName & {nan: number; infinite: number; count: number}) | null;
}

/** At which steps something is NaN or infinite that should not be, from `api/nonfinite`. */
export interface NonFinite {
  epoch: number;
  /** The frame from which on the answer tells everything. */
  from: number;
  /** Frames that were looked at. */
  frames: number;
  /** Stretches of logged steps: the first step, the last one, and how many. */
  bad: [first: number, last: number, count: number][];
  first: FirstNonFinite | null;
  /** The run's other models that have some. */
  others: string[];
  is_complete: boolean;
  are_others_complete: boolean;
}

/** A scalar that the training loop logged. */
export interface ScalarInfo {
  /** A prefix before `/` groups scalars. */
  name: string;
  /** That with which its values were logged; absent without one. */
  label?: string;
  /** How many there are. */
  values: number;
  /** It never falls, so that steps can be placed by it. */
  is_axis: boolean;
}

/** A sentence that the training loop noted. */
export interface StepNote {
  step: number;
  /** Seconds since the epoch. */
  time: number;
  text: string;
}

/** A scalar over time: an entry for each value, or, in a long run, for each bin of neighbouring steps. */
export interface ScalarValues {
  /** Step of each entry's first value, ascending, `[n]`. */
  step: Float64Array;
  /** When that was logged, in seconds since the epoch. */
  time: Float64Array;
  /** The mean of the finite values; an entry's only value as it is. */
  value: Float64Array;
  /** Step of its last value. */
  last: Float64Array;
  /** How many values there are. */
  count: Uint32Array;
  /** How many of them are NaN or infinite. */
  bad: Uint32Array;
  /** The least and the largest finite one; NaN without any. */
  low: Float64Array;
  high: Float64Array;
}

/** What is new of the scalars, from `api/scalars`. */
export interface ScalarNews {
  version: string;
  scalars: ScalarInfo[];
  notes: StepNote[];
  /** Steps of a bin. */
  unit: number;
  /** The step in whose bin the values begin: they replace what was known from there on. */
  from: number;
  /** By number of the scalar. */
  values: Map<number, ScalarValues>;
}

export type Severity = 'info' | 'warning' | 'error';

/** What a rule allows of a tensor's elements, or of a statistic of them: see `Band` in `finding.py`. */
export interface Band {
  /** `elements`, or the name of a measure. */
  statistic: string;
  kind: Kind;
  /** Null without a bound. */
  low: number | null;
  high: number | null;
}

/** What a rule says of a run: see docs/findings.md. */
export interface Finding {
  /** Its place in the list. */
  id: number;
  kind: string;
  severity: Severity;
  /** Empty for the model itself, null for the whole run. */
  module: string | null;
  call: number | null;
  path: string | null;
  step: number;
  last_step: number;
  text: string;
  advice: string;
  evidence: Record<string, number | null>;
  /** Ids of the findings that it follows from; empty for a root cause. */
  causes: number[];
  band: Band | null;
}

/** What the rules say of a model. */
export interface Findings {
  version: string;
  /** It is of all that was recorded; else ask again. */
  is_complete: boolean;
  /** Root causes first, each with what follows from it behind it. */
  findings: Finding[];
  /** How many more there are. */
  left_out: number;
  /** How many steps, the first and the last of them; null before any. */
  looked_at: {steps: number; first: number; last: number} | null;
  /** Steps there were then. */
  recorded: number;
  /** Why the rules could not be run. */
  problem: string | null;
}

/** Nothing is new for a client that has the version it asked with. */
export interface SameFindings {
  version: string;
  is_same: true;
  is_complete: boolean;
}

/** Some words of a line of an explanation, without any markup. */
export interface Span {
  text: string;
  /** Left out for plain words. */
  style?: 'code' | 'emphasis' | 'strong';
  /** `#name` leads to another explanation; see `findings/explanations.ts`. */
  link?: string;
}

/** A paragraph, a list or a table, whose first row is the header. */
export type ExplanationBlock = {text: Span[]} | {list: Span[][]} | {table: Span[][][]};

/** What a kind of finding means, or what a section that is linked to says, from `api/explanation`. */
export interface Explanation {
  /** The kind, or the name of the section. */
  name: string;
  /** The kind, or the heading of the section. */
  title: string;
  /** In one line; empty for a section. */
  line: string;
  is_kind: boolean;
  parts: {
    /** Its heading; may be empty. */
    name: string;
    blocks: ExplanationBlock[];
  }[];
}

/** A series as `api/compare` names it: by its number in the first run, and by its place. */
export interface ComparedSeries {
  id: number;
  module: string;
  call: number | null;
  role: Role;
  path: string;
  kind: Kind;
}

/** Where two runs part. */
export interface Divergence {
  step: number;
  /** The last step that both logged and at which they agree; null before any. */
  last_equal_step: number | null;
  /** `data`, `parameter`, `computation`, `gradient` or `update`. */
  kind: string;
  module: string;
  call: number | null;
  path: string;
  series: ComparedSeries;
  text: string;
}

export interface SeriesDifference {
  series: ComparedSeries;
  /** The first step at which they differ, or null. */
  first_different: number | null;
  first_beyond_rounding: number | null;
  first_beyond_fluctuation: number | null;
  /** Between the histograms, from 0 to 1, and at which step that is. */
  distance: number | null;
  distance_step: number | null;
  /** The largest difference of a statistic, relative to the magnitude. */
  gap: number | null;
}

/** How two models differ, from `api/compare`, as far as it is shown. */
export interface ComparisonAnswer {
  /** `exact`: steps that both logged were compared. */
  alignment: 'exact' | 'nearest' | 'none';
  /** How many steps were compared, and how many each run has. */
  steps: {compared: number; recorded: [number, number]};
  first_divergence: Divergence | null;
  first_beyond_rounding: Divergence | null;
  /** Those that differ most first. */
  series: SeriesDifference[];
  series_compared: number;
  settings: {name: string; a: string; b: string}[];
}
