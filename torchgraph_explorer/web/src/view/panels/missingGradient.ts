/** Why a tensor has no gradient to show. */

import type {SeriesInfo, TensorInfo} from '../../api/types';

export interface MissingGradient {
  /** One sentence. */
  text: string;
  /** How that comes about, or what can be done; empty where nothing is to be added. */
  why: string;
}

export interface Circumstances {
  /** Whose gradient is missing. */
  series: Pick<SeriesInfo, 'module' | 'role'>;
  /** What the graph knows of the tensor; null if it is not in it. */
  info: TensorInfo | null;
  /** Of `watch(log=...)`; null while it is not known. */
  log: readonly string[] | null;
  /** This is an exported page, which may hold a part of the run. */
  inPage: boolean;
  /** No more steps will come. */
  isFinished: boolean;
}

const NAMES = {input: 'input', output: 'output', param: 'parameter', attached: 'tensor', edge: 'edge'} as const;

/** The first reason that holds, from what is certain to what is only so for now. */
export function missingGradient({series, info, log, inPage, isFinished}: Circumstances): MissingGradient {
  const kind = series.role === 'param' ? 'params_grad' : 'io_grad';
  if (log !== null && !log.includes(kind)) return {text: 'Its gradient is not logged.', why: `watch(log=...) leaves out '${kind}'.`};
  if (info !== null && !info.requires_grad) return unrequired(series, info);
  if (inPage) return {text: 'No gradient in this page.', why: ''};
  if (isFinished) return {text: 'No gradient came.', why: 'No backward pass of a recorded step reached it.'};
  return {text: 'No gradient yet.', why: 'No backward pass of a recorded step has reached it so far.'};
}

function unrequired({module, role}: Circumstances['series'], {dtype}: TensorInfo): MissingGradient {
  if (!/^(b?float|complex)/.test(dtype)) return {text: `Values of type ${dtype} have no gradient.`, why: ''};
  return {text: `The ${NAMES[role]} does not require a gradient.`, why: causes(module, role)};
}

function causes(module: string, role: SeriesInfo['role']): string {
  if (role === 'param') return 'It is frozen: its requires_grad is False.';
  if (module === '' && role === 'input') return 'To see its gradient, call requires_grad_() on it before you call the model.';
  return 'It was computed under no_grad, or detached, or nothing that it was computed from requires one.';
}
