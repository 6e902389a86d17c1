/** Where findings begin, as marks in the picture. */

import type {JSX} from 'preact';
import {stepName} from '../../numberText';
import type {Finding, Severity} from '../../api/types';
import {placeText, titleOf} from '../../findings/names';
import {worst} from '../../findings/roots';
import {HALF_PX, marksOf} from '../../xray/marks';
import {rowOf} from '../../xray/tree';
import {chosen, found} from '../findings/found';
import {goToFinding} from '../findings/goToFinding';
import * as shown from '../state/shown';
import {inSight, rows} from './store';
import {keepXray} from './shownXray';

export function Marks({width, height}: {width: number; height: number}): JSX.Element {
  const className = shown.data.value?.session?.class_name ?? '';
  return (
    <div class="xray-marks">
      {marksOf(places(width, height)).map(({x, y, subjects: findings}) => {
        const [first] = findings as [Finding];
        const severity: Severity = worst(findings);
        const words = findings.slice(0, 6).map((one) => `${titleOf(one.kind)}: ${placeText(one, className)}`);
        const more = findings.length > 6 ? [`and ${findings.length - 6} more`] : [];
        const text = [`From ${stepName(first.step)}`, ...words, ...more].join('\n');
        const isChosen = chosen.value !== null && findings.includes(chosen.value);
        return (
          <button
            key={`${first.id}`}
            type="button"
            class={`xray-mark is-${severity}${isChosen ? ' is-chosen' : ''}`}
            style={{left: `${x}px`, top: `${y}px`}}
            aria-label={text}
            title={text}
            onClick={() => (keepXray(), goToFinding(first))}
          />
        );
      })}
    </div>
  );
}

/** Where findings begin in the picture. A finding of the whole run stands at the top. */
function* places(width: number, height: number): Generator<{x: number; y: number; subject: Finding}> {
  const {from, to} = inSight.value;
  const all = rows.value;
  for (const finding of found.value?.findings ?? []) {
    const x = ((finding.step - from) / (to - from)) * width;
    if (!(x >= 0 && x <= width)) continue;
    const row = finding.module === null ? -1 : rowOf(all, finding.module);
    const y = row < 0 ? HALF_PX : Math.min(Math.max(((row + 0.5) / all.length) * height, HALF_PX), height - HALF_PX);
    yield {x, y, subject: finding};
  }
}
