/** How many findings there are, those of other models of the run included, where the list is out of sight; a press shows it. */

import './findings.css';

import {countText} from '../../findings/names';
import {worst} from '../../findings/roots';
import {isShown, reveal} from '../layout/sides';
import * as choices from '../state/choices';
import {elsewhere} from './elsewhere';
import {found} from './found';
import {SeverityIcon} from './SeverityIcon';

export function FindingsButton() {
  const findings = [found.value?.findings ?? [], ...elsewhere.value.map((other) => other.findings)].flat();
  if (findings.length === 0 || (choices.view.value === 'graph' && isShown('modules'))) return null;
  const severity = worst(findings);
  return (
    <button type="button" class={`findings-button is-${severity}`} title="Show the findings" onClick={show}>
      <SeverityIcon severity={severity} />
      {countText(findings.length)}
    </button>
  );
}

function show(): void {
  choices.view.value = 'graph';
  reveal('modules');
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.findings-list, .findings-elsewhere button')?.focus());
}
