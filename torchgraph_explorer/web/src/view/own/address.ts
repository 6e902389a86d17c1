/** The address of a view's page. Pure. */

import type {ModelName} from '../../api/answers';
import type {TensorKey} from '../../api/tensors';
import type {OwnViewInfo} from '../../api/types';
import type {Sample} from '../../tensors/choice';

export interface Wanted {
  view: OwnViewInfo;
  model: ModelName;
  step: number | null;
  /** Qualified name of the selected module. */
  module: string | null;
  /** The chosen tensor, or its gradient. */
  tensor: (TensorKey & {loss: string}) | null;
  sample: Sample;
  index: readonly number[] | null;
  rank: number | null;
  theme: 'light' | 'dark';
  /** How often the user asked to load the view again. */
  again: number;
  /** How often the page was asked for in vain. */
  attempt: number;
}

/** The address, relative to the page. It differs whenever the view must be drawn again. */
export function addressOf({view, model, step, module, tensor, sample, index, rank, theme, again, attempt}: Wanted): string {
  const query = new URLSearchParams({...model, view: view.name, version: view.version, sample: String(sample), theme});
  const more: Record<string, string | number | null> = {step, rank, module: tensor?.module ?? module, index: index?.join() ?? null, fresh: again > 0 ? 1 : null, again: again || null, attempt: attempt || null};
  if (tensor !== null) Object.assign(more, {call: tensor.call, role: tensor.role, path: tensor.path, kind: tensor.kind, loss: tensor.loss || null});
  for (const [name, value] of Object.entries(more)) if (value !== null) query.set(name, String(value));
  return `./api/view?${query}`;
}
