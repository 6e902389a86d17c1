/** Where the run on show and the one that the graph is compared with part, in a line that leads there. */

import './comparison.css';

import type {JSX} from 'preact';
import {counted, stepName, wholeNumber} from '../../numberText';
import type {ComparisonAnswer, Divergence} from '../../api/types';
import {RunChip} from './RunChip';
import {comparison, goToSeries} from './divergence';
import {against} from './state';

export function DivergenceLine(): JSX.Element | null {
  const [other, known] = [against.value, comparison.value];
  if (other === null) return null;
  const found = known?.answer?.first_divergence ?? null;
  const text = known === null ? 'looking for where the runs part …' : known.answer === null ? known.problem : textOf(known.answer);
  return (
    <div class="divergence" role="status">
      <RunChip number={other.number} />
      <span title={text ?? undefined}>{text}</span>
      {found !== null && (
        <button type="button" class="button" title={`Go to ${stepName(found.step)} and ${found.module || 'the model'}`} onClick={() => goTo(found)}>
          Go there
        </button>
      )}
    </div>
  );
}

/** How many steps each run has, where most of the shorter one were not compared. */
function ofAll({compared, recorded}: ComparisonAnswer['steps']): string {
  return compared < Math.min(...recorded) / 2 ? `, of ${recorded.map((one) => wholeNumber(one)).join(' and ')}` : '';
}

function goTo(found: Divergence): void {
  goToSeries({...found, role: found.series.role}, found.step);
}

function textOf({alignment, first_divergence: first, first_beyond_rounding: beyond, steps}: ComparisonAnswer): string {
  if (first !== null && beyond === null) return `${first.text} It is within rounding.`;
  if (first !== null) return first.text;
  if (alignment === 'exact') return `No difference at the ${counted(steps.compared, 'step')} that both logged${ofAll(steps)}.`;
  return 'The runs have no logged step in common, so where they part is not known.';
}
