/** Which part of a tensor's maps is shown, and how they lie over the first tensor where maps are linked. */

import {NumberInput} from '../controls/NumberInput';
import {elementText} from '../../flow/maps';
import type {Axis, Lining} from '../../flow/lining';
import {spanOfElement} from '../../flow/region';
import {isLinked, linedUp, linings, liningOf, marked, show, spans} from './state';
import type {TensorFacts} from '../../flow/types';

export function PartOnShow({facts}: {facts: TensorFacts}) {
  const span = spans.value[facts.name];
  const mark = marked.value?.tensor === facts.name ? marked.value.element : null;
  return (
    <>
      {(span !== undefined || mark !== null) && (
        <p class="flow-part">
          {mark !== null && (
            <button type="button" class="button" title="Show this part only (Z)" onClick={() => show(facts, spanOfElement(facts.shape, mark))}>
              Zoom to {elementText(mark)}
            </button>
          )}
          {span !== undefined && (
            <>
              <span class="dim">
                rows {span.rows[0]}:{span.rows[1]}, columns {span.columns[0]}:{span.columns[1]}
              </span>
              <button type="button" class="button" title="Show all of it (A: of all tensors)" onClick={() => show(facts, null)}>
                Show all
              </button>
            </>
          )}
        </p>
      )}
      {isLinked.value && linedUp(facts).length > 1 && linedUp(facts)[0]!.name !== facts.name && <LiningInputs facts={facts} />}
    </>
  );
}

/** Row `i` lies at offset + stride · i of the first tensor, and columns likewise. */
function LiningInputs({facts}: {facts: TensorFacts}) {
  const lining = liningOf(facts);
  const first = linedUp(facts)[0]!.name;
  const set = (part: keyof Lining, values: Partial<Axis>) => {
    const known = liningOf(facts); // what is drawn may be older
    linings.value = {...linings.value, [facts.name]: {...known, [part]: {...known[part], ...values}}};
  };
  const field = (part: keyof Lining, of: keyof Axis) => (
    <NumberInput
      step="any"
      value={lining[part][of]}
      label={`${of === 'offset' ? 'Offset' : 'Stride'} of the ${part} of ${facts.name} over ${first}`}
      onChoose={(value) => Number.isFinite(value) && (of === 'offset' || value > 0) && set(part, {[of]: value})}
    />
  );
  return (
    <fieldset class="flow-lining">
      <legend>Over {first}</legend>
      {(['rows', 'columns'] as const).map((part) => (
        <div key={part}>
          {part} {field(part, 'offset')} + {field(part, 'stride')} · i
        </div>
      ))}
    </fieldset>
  );
}
