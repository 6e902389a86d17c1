/** Whose steps are shown, where several optimizers made them. */

import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {Select} from '../controls/Select';

export function OptimizerChoice() {
  const offered = shown.data.value?.optimizers ?? [];
  const chosen = choices.optimizer.value;
  if (offered.length === 0 && chosen === null) return null;
  const known = offered.map((name) => ({value: name, label: name}));
  const missing = chosen === null || offered.includes(chosen) ? [] : [{value: chosen, label: `${chosen} (not found)`}];
  return (
    <Select
      label="Steps of"
      value={chosen ?? ''}
      options={[{value: '', label: 'All optimizers'}, ...known, ...missing]}
      onChoose={(name) => (choices.optimizer.value = name === '' ? null : name)}
      isBare
    />
  );
}
