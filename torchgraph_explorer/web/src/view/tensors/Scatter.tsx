/** The neurons of two kept tensors, one against the other, with their correlation. */

import type {JSX} from 'preact';
import type {KeptInfo, WantedPart} from '../../api/tensors';
import {formatNumber, wholeNumber} from '../../numberText';
import {Select} from '../controls/Select';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Fold} from './Controls';
import {fullName, infosAt, variantName, variantOf} from '../../tensors/names';
import type {Kept} from '../../tensors/names';
import {usePart} from './parts';
import {product} from '../../tensors/request';
import {isOpen, toggle} from './sections';
import {correlation} from '../../tensors/shade';
import * as store from './store';

interface ScatterProps {
  kept: Kept;
  info: KeptInfo;
  step: number;
}

export function Scatter(props: ScatterProps): JSX.Element {
  return (
    <Fold title="Compared with another tensor" isOpen={isOpen('scatter')} onToggle={() => toggle('scatter')}>
      <Points {...props} />
    </Fold>
  );
}

/** The tensors of the step whose neurons can be paired with these, those of the same module and of modules around it first. */
function partners({info, step}: ScatterProps): {value: string; label: string; info: KeptInfo}[] {
  const graph = shown.graph.value;
  const wanted = neurons(info);
  const there = infosAt(store.kept.value, step);
  const again = new Set([...store.tensors.value.values()].filter(({info: {call}}) => call !== null && call > 0).map(({info: {module}}) => module));
  const isCalledAgain = ({module}: KeptInfo): boolean => again.has(module);
  const found = [...store.tensors.value.values()].flatMap((one) =>
    one.variants
      .filter((other) => neurons(other) === wanted && other !== info && there.has(other))
      .map((other) => ({
        value: JSON.stringify([one.id, variantOf(other)]),
        label: `${fullName(graph, other, isCalledAgain(other))}${other.kind === 'value' ? '' : `, ${variantName(other).toLowerCase()}`}`,
        info: other,
      })),
  );
  return found.sort((a, b) => distance(info.module, a.info.module) - distance(info.module, b.info.module));
}

/** 0 for the same module, 1 for one that has or is in the other, 2 otherwise. */
function distance(one: string, other: string): number {
  if (one === other) return 0;
  return other !== '' && one !== '' && (`${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`)) ? 1 : 2;
}

function neurons({kept_shape, batch_dim}: KeptInfo): number {
  return product(kept_shape.filter((_, dim) => dim !== batch_dim));
}

function Points(props: ScatterProps): JSX.Element {
  const {info, step} = props;
  const options = partners(props);
  const {other} = choices.tensors.value;
  const chosen = options.find(({value}) => value === other) ?? options[0];
  const [model, version] = [shown.model.value?.name ?? null, store.record.value];
  const x = usePart(model, asked(info, step), version);
  const y = usePart(model, chosen === undefined ? null : asked(chosen.info, step), version);
  if (chosen === undefined) return <p class="dim">No other kept tensor has as many neurons.</p>;
  const problem = x.problem ?? y.problem;
  return (
    <>
      <div class="tensor-bar">
        <Select label="Other tensor" value={chosen.value} options={options} onChoose={(value) => store.change({other: value})} />
      </div>
      {problem !== null && (
        <p class="tensor-problem" role="status">
          {problem}
        </p>
      )}
      {problem === null && (x.value === null || y.value === null) && <p class="tensor-loading dim">Loading …</p>}
      {x.value !== null && y.value !== null && <Plot x={x.value.values} y={y.value.values} />}
    </>
  );
}

/** Elements in one answer. */
const MOST_ELEMENTS = 1 << 18;

/**
 * The numbers of its neurons: of one sample, or of all if that is on show and they are not too many; or the statistic.
 * Of one number for each sample, always of all.
 */
function asked(info: KeptInfo, step: number): WantedPart {
  const {sample} = choices.tensors.value;
  const isStatistic = typeof sample === 'string' && sample !== 'all';
  if ((sample === 'all' || neurons(info) === 1) && product(info.kept_shape) <= MOST_ELEMENTS && !isStatistic) return {...store.wantedTensor(info, step), what: 'values', at: '', shrink: []};
  const at = typeof sample === 'number' ? Math.min(sample, Math.max(0, info.samples.length - 1)) : 0;
  const what = info.batch_dim === null || typeof sample === 'number' || sample === 'all' ? 'values' : sample;
  const where = what === 'values' ? info.kept_shape.map((_, dim) => (dim === info.batch_dim ? String(at) : ':')).join() : '';
  return {...store.wantedTensor(info, step), what, at: where, shrink: []};
}

const SIDE = 260;
const MOST_POINTS = 4000;

function Plot({x, y}: {x: ArrayLike<number>; y: ArrayLike<number>}): JSX.Element {
  const count = Math.min(x.length, y.length);
  const {r, pairs} = correlation(x, y);
  const every = Math.max(1, Math.ceil(count / MOST_POINTS));
  const [across, up] = [extentOf(x), extentOf(y)];
  const points: [number, number][] = [];
  for (let i = 0; i < count; i += every) {
    const [a, b] = [x[i] as number, y[i] as number];
    if (Number.isFinite(a) && Number.isFinite(b)) points.push([share(a, across) * SIDE, (1 - share(b, up)) * SIDE]);
  }
  if (pairs === 0) return <p class="dim">There is no pair of two finite numbers.</p>;
  const text = Number.isNaN(r) ? 'no correlation: one of them is constant' : `correlation ${formatNumber(r)}`;
  return (
    <figure class="tensor-scatter">
      <figcaption>
        <b>{text}</b>, {wholeNumber(pairs)} pairs{every > 1 && `, one in ${every} drawn`}
      </figcaption>
      <svg viewBox={`-6 -6 ${SIDE + 12} ${SIDE + 12}`} role="img" aria-label={`Scatter of ${pairs} pairs, ${text}`}>
        <rect width={SIDE} height={SIDE} />
        {across[0] < 0 && across[1] > 0 && <path class="zero" d={`M${share(0, across) * SIDE} 0V${SIDE}`} />}
        {up[0] < 0 && up[1] > 0 && <path class="zero" d={`M0 ${(1 - share(0, up)) * SIDE}H${SIDE}`} />}
        <path class="points" d={points.map(([left, top]) => `M${left.toFixed(1)} ${top.toFixed(1)}h0`).join('')} />
      </svg>
      <div class="tensor-scatter-ends dim">
        <span>
          horizontal, this tensor: {formatNumber(across[0])} to {formatNumber(across[1])}
        </span>
        <span>
          vertical, the other: {formatNumber(up[0])} to {formatNumber(up[1])}
        </span>
      </div>
    </figure>
  );
}

function extentOf(values: ArrayLike<number>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : [0, 0];
}

function share(value: number, [low, high]: [number, number]): number {
  return high > low ? (value - low) / (high - low) : 0.5;
}
