/** Small controls of the page of tensors. */

import type {ComponentChildren, JSX} from 'preact';
import {IconButton} from '../controls/Icon';
import {Select} from '../controls/Select';
import type {Option} from '../controls/Select';

interface StepperProps {
  label: string;
  value: string;
  options: readonly Option[];
  onChoose: (value: string) => void;
  /** The keys that go back and forth, for the buttons' names. */
  keys: readonly [string, string];
  /** Called instead of choosing the next option. */
  onStep?: (by: number) => void;
}

/** A choice with buttons to the one before and the next. */
export function Stepper({label, value, options, onChoose, keys, onStep}: StepperProps): JSX.Element {
  const at = options.findIndex((one) => one.value === value);
  const go = (by: number): void => {
    const next = options[at + by];
    if (onStep) onStep(by);
    else if (next) onChoose(next.value);
  };
  return (
    <div class="stepper" role="group" aria-label={`${label}, back and forth`}>
      <IconButton icon="previous" label={`Previous ${label.toLowerCase()} (${keys[0]})`} onPress={() => go(-1)} disabled={at <= 0} />
      <Select label={label} value={value} options={options} onChoose={onChoose} />
      <IconButton icon="next" label={`Next ${label.toLowerCase()} (${keys[1]})`} onPress={() => go(1)} disabled={at < 0 || at >= options.length - 1} />
    </div>
  );
}

interface FoldProps {
  title: string;
  isOpen: boolean;
  onToggle: () => void;
  children: ComponentChildren;
}

/** A part below the picture. What is folded is not fetched. */
export function Fold({title, isOpen, onToggle, children}: FoldProps): JSX.Element {
  return (
    <section class="tensor-section">
      <h3>
        <button type="button" aria-expanded={isOpen} onClick={onToggle}>
          <span class="fold" aria-hidden="true" />
          {title}
        </button>
      </h3>
      {isOpen && <div class="tensor-section-body">{children}</div>}
    </section>
  );
}
