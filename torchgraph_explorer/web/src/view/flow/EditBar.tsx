/** Edits the inputs: what a click does, and undo. */

import {useState} from 'preact/hooks';
import {NumberInput} from '../controls/NumberInput';
import {elementText} from '../../flow/maps';
import {brush, edit, isEditing, marked, state} from './state';

export function EditBar({isOpen}: {isOpen: boolean}) {
  const {edits, inputs} = state.value!;
  const [std, setStd] = useState(0.1);
  const [tensor = inputs[0] as string, setTensor] = useState<string>();
  const facts = state.value!.tensors.find(({name}) => name === tensor);
  const mark = marked.value?.tensor === tensor ? marked.value.element : null;
  const region = mark ?? facts?.shape.map(() => null) ?? [];
  const columns = (facts?.shape.length ?? 1) - 1;
  const shift = (dim: number, by: number) => edit({kind: 'shift', tensor, dim, by});
  if (edits === null) return null;
  return (
    <div class={`flow-bar${isOpen ? ' is-open' : ''}`} role="group" aria-label="Edit the input">
      <label class="flow-check">
        <input type="checkbox" checked={isEditing.value} onChange={(event) => (isEditing.value = event.currentTarget.checked)} /> Edit the input
      </label>
      {inputs.length > 1 && (
        <select aria-label="Input" value={tensor} onChange={(event) => setTensor(event.currentTarget.value)}>
          {inputs.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <label class="select">
        <span class="select-label">Value</span>
        <NumberInput step="any" value={brush.value} label="Value that the brush sets" onChoose={(chosen) => (brush.value = chosen || 0)} />
      </label>
      <span class="dim" title="Drag over the map with Shift, or press Shift and arrows, to mark a region of the input">
        {mark === null ? 'All of it:' : `${elementText(mark)}:`}
      </span>
      {mark !== null && (
        <>
          <button type="button" class="button" aria-label="Mark nothing" title="Mark nothing" onClick={() => (marked.value = null)}>
            ×
          </button>
          <button type="button" class="button" onClick={() => edit({kind: 'fill', tensor, region, value: brush.value})}>
            Fill
          </button>
        </>
      )}
      <button type="button" class="button" onClick={() => edit({kind: 'fill', tensor, region, value: 0})}>
        Zero
      </button>
      <button type="button" class="button" onClick={() => edit({kind: 'noise', tensor, region, std, seed: edits.undoable})}>
        Noise
      </button>
      <NumberInput min={0} step="any" value={std} label="Standard deviation of the noise" onChoose={(chosen) => setStd(chosen || 0)} />
      <span class="flow-shift" role="group" aria-label="Shift">
        <button type="button" class="button" aria-label="Shift left" onClick={() => shift(columns, -1)}>
          ←
        </button>
        <button type="button" class="button" aria-label="Shift right" onClick={() => shift(columns, 1)}>
          →
        </button>
        {columns > 0 && (
          <>
            <button type="button" class="button" aria-label="Shift up" onClick={() => shift(columns - 1, -1)}>
              ↑
            </button>
            <button type="button" class="button" aria-label="Shift down" onClick={() => shift(columns - 1, 1)}>
              ↓
            </button>
          </>
        )}
      </span>
      <button type="button" class="button" disabled={edits.undoable === 0} onClick={() => edit({kind: 'undo'})}>
        Undo
      </button>
      <button type="button" class="button" disabled={edits.redoable === 0} onClick={() => edit({kind: 'redo'})}>
        Redo
      </button>
      <button type="button" class="button" disabled={!edits.edited} onClick={() => edit({kind: 'reset'})}>
        Reset
      </button>
    </div>
  );
}
