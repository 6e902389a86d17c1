/** Where findings begin, as marks in the picture. */

import type {JSX} from 'preact';
import type {Finding, Severity} from '../../api/types';
import {placeText, titleOf} from '../../findings/names';
import {worst} from '../../findings/roots';
import {rowOf} from '../../xray/tree';
import {chosen, found} from '../findings/found';
import {goToFinding} from '../findings/goToFinding';
import * as shown from '../state/shown';
import {inSight, rows} from './store';
import {keepXray} from './shownXray';

const NEAR_PX = 9;
const MOST = 60;
/** From the middle of a mark to its upper corner. */
const HALF_PX = 9;

interface Mark {
  x: number;
  y: number;
  findings: Finding[];
}

export function Marks({width, height}: {width: number; height: number}): JSX.Element {
  const className = shown.data.value?.session?.class_name ?? '';
  return (
    <div class="xray-marks">
      {marksIn(width, height).map(({x, y, findings}) => {
        const [first] = findings as [Finding];
        const severity: Severity = worst(findings);
        const words = findings.slice(0, 6).map((one) => `${titleOf(one.kind)}: ${placeText(one, className)}`);
        const more = findings.length > 6 ? [`and ${findings.length - 6} more`] : [];
        const text = [`From step ${first.step.toLocaleString('en')}`, ...words, ...more].join('\n');
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

/** Marks that would cover each other are one. A finding of the whole run stands at the top. */
function marksIn(width: number, height: number): Mark[] {
  const {from, to} = inSight.value;
  const all = rows.value;
  const marks: Mark[] = [];
  for (const finding of found.value?.findings ?? []) {
    const x = ((finding.step - from) / (to - from)) * width;
    if (!(x >= 0 && x <= width)) continue;
    const row = finding.module === null ? -1 : rowOf(all, finding.module);
    const y = row < 0 ? HALF_PX : Math.min(Math.max(((row + 0.5) / all.length) * height, HALF_PX), height - HALF_PX);
    const near = marks.find((one) => Math.abs(one.x - x) < NEAR_PX && Math.abs(one.y - y) < NEAR_PX);
    if (near) near.findings.push(finding);
    else if (marks.length < MOST) marks.push({x, y, findings: [finding]});
  }
  return marks;
}
