/** What the maps show, and what is strong enough to be shown. */

import {useState} from 'preact/hooks';
import {NumberInput} from '../controls/NumberInput';
import {Segments, Select} from '../controls/Select';
import {act, isLinked, isOneScale, quantity, state, threshold, when, zoom} from './state';
import type {Quantity, When} from '../../flow/types';

export function Toolbar({isOpen}: {isOpen: boolean}) {
  return (
    <div class={`flow-bar${isOpen ? ' is-open' : ''}`} role="group" aria-label="How it is shown">
      <Segments
        label="Colour"
        value={quantity.value}
        options={[
          {value: 'gradient', label: 'Gradient'},
          {value: 'value', label: 'Value'},
          {value: 'contribution', label: 'Contribution'},
        ]}
        onChoose={(value) => (quantity.value = value as Quantity)}
      />
      {state.value?.edits?.edited && (
        <Segments
          label="When"
          value={when.value}
          options={[
            {value: 'now', label: 'After'},
            {value: 'before', label: 'Before'},
            {value: 'difference', label: 'Difference'},
          ]}
          onChoose={(value) => (when.value = value as When)}
        />
      )}
      <label class="flow-check">
        <input type="checkbox" checked={isOneScale.value} onChange={(event) => (isOneScale.value = event.currentTarget.checked)} /> One scale
      </label>
      <label class="flow-check" title="Zooming into one map shows the corresponding parts of the others, and pointing at a place outlines it in all">
        <input type="checkbox" checked={isLinked.value} onChange={(event) => (isLinked.value = event.currentTarget.checked)} /> Link maps
      </label>
      <Threshold />
      <label class="select">
        <span class="select-label">Zoom</span>
        <input
          type="range"
          min="0.5"
          max="4"
          step="0.25"
          value={zoom.value}
          aria-label="Zoom of the maps"
          onInput={(event) => (zoom.value = Number(event.currentTarget.value))}
        />
      </label>
      <Target />
      <Save />
    </div>
  );
}

function Threshold() {
  const {by, at} = threshold.value;
  return (
    <span class="select">
      <span class="select-label">Show contributions of at least</span>
      <NumberInput
        min={0}
        max={by === 'share' ? 100 : undefined}
        step={by === 'share' ? 1 : 'any'}
        value={at}
        label="Threshold"
        onChoose={(chosen) => (threshold.value = {by, at: Math.max(0, chosen || 0)})}
      />
      <Select
        isBare
        label="Share or value"
        value={by}
        options={[
          {value: 'share', label: '% of the strongest'},
          {value: 'value', label: 'in value'},
        ]}
        onChoose={(value) => (threshold.value = {by: value as 'share' | 'value', at: value === 'share' ? 5 : 0})}
      />
    </span>
  );
}

/** The loss, or an element of the output by its index. */
function Target() {
  const name = state.value!.target.name;
  const [text, setText] = useState('');
  if (state.value!.target.now === '') return null;
  const aim = () => {
    const index = text.split(/[\s,]+/).filter(Boolean).map(Number);
    void act('target', {index: index.length > 0 ? index : null});
  };
  return (
    <form class="select" onSubmit={(event) => (event.preventDefault(), aim())}>
      <span class="select-label">Gradient of</span>
      <input
        value={text}
        placeholder={name}
        aria-label="Target: empty for the loss, or the index of an element of the output, such as 0, 3"
        title="Empty for the loss, or the index of an element of the output, such as 0, 3"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" class="button">
        Set
      </button>
    </form>
  );
}

function Save() {
  const [name, setName] = useState('case.npz');
  const [saved, setSaved] = useState('');
  const save = async () => setSaved((await act('save', {name})) ? `Saved ${name}` : '');
  return (
    <form class="select" onSubmit={(event) => (event.preventDefault(), void save())}>
      <input value={name} aria-label="File to save the case in" onInput={(event) => setName(event.currentTarget.value)} />
      <button type="submit" class="button">
        Save
      </button>
      <span role="status" class="dim">
        {saved}
      </span>
    </form>
  );
}
