/** The series that differ most between the run on show and the one that the graph is compared with. */

import type {JSX} from 'preact';
import type {SeriesDifference} from '../../api/types';
import {formatNumber, stepName} from '../../numberText';
import {TITLES} from '../panels/Chart';
import {comparison, goToSeries} from './divergence';
import {RunChip} from './RunChip';
import {against} from './state';

const MOST = 10;

export function MostDifferent(): JSX.Element | null {
  const [other, known] = [against.value, comparison.value?.answer ?? null];
  if (other === null || known === null) return null;
  const different = known.series.filter(({first_different, distance, gap}) => first_different !== null || (distance ?? 0) > 0 || gap === null).slice(0, MOST);
  if (different.length === 0) return null;
  return (
    <div class="runs-ranked">
      <h3>
        <RunChip number={other.number} /> Series that differ most
        <span class="dim" title="How far the histograms are apart: 0 if they are equal, near 1 if they have nothing in common">distance, 0 to 1</span>
      </h3>
      <ol>
        {different.map((one) => (
          <li key={one.series.id}>
            <button type="button" onClick={() => goToSeries(one.series, one.distance_step ?? one.first_different)} title={titleOf(one)}>
              <span>
                {one.series.module || 'the model'} <span class="dim">{one.series.path}{one.series.kind === 'value' ? '' : `, ${TITLES[one.series.kind]}`}</span>
              </span>
              <b>{one.distance === null ? '–' : formatNumber(one.distance)}</b>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function titleOf({first_different: first, first_beyond_fluctuation: beyond, distance_step: at}: SeriesDifference): string {
  const parts = [
    first === null ? null : `different since ${stepName(first)}`,
    beyond === null ? null : `by more than they fluctuate since ${stepName(beyond)}`,
    at === null ? null : `most at ${stepName(at)}`,
  ];
  return parts.filter(Boolean).join(', ');
}
