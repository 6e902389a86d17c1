/** Parts of tensors as the server sends them. */

import type {KeptInfo, TensorPart} from '../../src/api/tensors';
import {summaryOf} from '../../src/tensors/shade';

/** A part that counts upwards from 0. */
export function counting(size: number[], facts: Partial<TensorPart> = {}): TensorPart {
  const values = Float32Array.from({length: size.reduce((product, one) => product * one, 1)}, (_, i) => i);
  return {
    ...{step: 10, dtype: 'float32', shape: size, kept_shape: size, batch_dim: null, samples: [], categories: [], rank: 0},
    ...{gradient_scale: null, start: size.map(() => 0), stop: size, factors: size.map(() => 1), is_rounded: false},
    ...{summary: summaryOf(values), bounds: null, size, values, merged: null, ...facts},
  };
}

export function info(facts: Partial<KeptInfo> = {}): KeptInfo {
  return {
    ...{module: 'fc', call: 0, role: 'output', path: 'output', kind: 'value', dtype: 'float32', shape: [64, 5], kept_shape: [8, 5]},
    ...{batch_dim: 0, samples: [0, 8], categories: [], loss: '', named: 'intermediate', node: '', ...facts},
  };
}
