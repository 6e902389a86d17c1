/** What the colours of cells mean. */

import type {JSX} from 'preact';
import {formatNumber} from '../../numberText';
import {isBad, ZERO} from '../../xray/codes';
import {STOPS} from './colours';
import {hasCells, scale, whole} from './store';

const RULE = 'A cell of several steps or modules shows the largest value, and is red if any of them is not finite.';

export function Legend(): JSX.Element | null {
  const now = scale.value;
  if (!hasCells.value) return null;
  return (
    <div class="xray-legend" aria-label={`Legend. ${RULE}`} role="note" title={RULE}>
      {now === null ? (
        <span>{whole.value?.codes.some(isBad) ? 'nothing finite' : 'not recorded'}</span>
      ) : (
        <>
          <span>{now.isLog ? `≤ ${formatNumber(now.low)}` : formatNumber(now.low)}</span>
          <i class="xray-ramp" style={{background: `linear-gradient(to right, ${STOPS.map((name) => `var(${name})`).join(', ')})`}} />
          <span>{now.isLog ? `≥ ${formatNumber(now.high)}` : formatNumber(now.high)}</span>
          {now.isLog && <span class="dim">log</span>}
        </>
      )}
      {now?.isLog && whole.value?.codes.includes(ZERO) && (
        <span class="xray-key">
          <i class="xray-swatch is-zero" /> zero
        </span>
      )}
      <span class="xray-key">
        <i class="xray-swatch is-bad" /> NaN or ∞
      </span>
      <span class="xray-key">
        <i class="xray-swatch" /> no value
      </span>
    </div>
  );
}
