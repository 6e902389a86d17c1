/** The loss above the cells, on the same axis. */

import type {JSX} from 'preact';
import {curvePaths, curvePoints, wholeScale} from '../../charts/curve';
import type {CurveScale} from '../../charts/curve';
import {axisNumber} from '../../charts/format';
import type {ScalarValues} from '../../api/types';
import {formatNumber} from '../../numberText';
import {numberOf} from '../../model/scalars';
import {curveName} from '../state/axis';
import * as shown from '../state/shown';
import {inSight, whole} from './store';

const LOSS_HEIGHT = 44;
/** Radius of a value without neighbours. */
const DOT = 2;

/** The least and the largest of the finite values. */
function finiteExtent(values: Pick<ScalarValues, 'low' | 'high'>): [low: number, high: number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values.low) if (Number.isFinite(value)) low = Math.min(low, value);
  for (const value of values.high) if (Number.isFinite(value)) high = Math.max(high, value);
  return [low, high];
}

/** A single value, which the scale has room around, is written as it is. */
function rangeText(values: Pick<ScalarValues, 'low' | 'high'>, {low, high, kind}: CurveScale): string {
  const [least, largest] = finiteExtent(values);
  if (least === largest) return formatNumber(least);
  if (kind === 'log') return `${formatNumber(low)} to ${formatNumber(high)}, log`;
  return `${axisNumber(low, high - low)} to ${axisNumber(high, high - low)}`;
}

export function Loss({width, gutter}: {width: number; gutter: number}): JSX.Element | null {
  const data = shown.model.value?.scalars.data.value;
  const values = data?.values.get(numberOf(data, curveName.value));
  if (values === undefined || whole.value === null) return null; // which steps are in sight is not known before the cells
  const {from, to} = inSight.value;
  const scale = wholeScale(values, shown.chart.value.curves);
  if (scale === null) return null; // nothing finite
  const box = {width, height: LOSS_HEIGHT, left: from, right: to};
  const points = curvePoints(values, (step) => (step >= from && step <= to ? step : NaN));
  const paths = curvePaths(values, points, scale, box);
  return (
    <div class="xray-loss">
      <span class="xray-loss-name" style={{width: `${gutter}px`}}>
        <bdi title={curveName.value ?? ''}>{curveName.value}</bdi>
        <small>{rangeText(values, scale)}</small>
      </span>
      <svg width={width} height={LOSS_HEIGHT} role="img" aria-label={`${curveName.value ?? ''} over the steps in sight`}>
        {paths && (
          <>
            <path class="xray-loss-range" d={paths.range} />
            <path class="xray-loss-line" d={paths.line} />
            {paths.dots.map(([x, y]) => (
              <circle key={x} class="xray-loss-dot" cx={Math.min(Math.max(x, DOT), width - DOT)} cy={y} r={DOT} />
            ))}
            {paths.bad.map((x) => (
              <rect key={x} class="xray-loss-bad" x={x - 1} y="0" width="2" height={LOSS_HEIGHT} />
            ))}
          </>
        )}
      </svg>
    </div>
  );
}
