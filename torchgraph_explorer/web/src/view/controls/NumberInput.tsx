/** A field for a number. */

import {useSignal} from '@preact/signals';

export interface NumberInputProps {
  value: number;
  /** For assistive technology; not needed within a label. */
  label?: string;
  min?: number;
  max?: number | undefined;
  step?: number | 'any';
  /** Called when the user is done: with Enter, with the arrows, or elsewhere. NaN for an empty field. */
  onChoose: (value: number) => void;
}

/** What is being typed stays though the page is drawn anew; once the user is done, the field shows `value` again. */
export function NumberInput({value, label, onChoose, ...limits}: NumberInputProps) {
  const typed = useSignal<string | null>(null);
  return (
    <input
      type="number"
      aria-label={label}
      {...limits}
      value={typed.value ?? String(value)}
      onInput={({currentTarget}) => (typed.value = currentTarget.value)}
      onChange={({currentTarget}) => {
        onChoose(currentTarget.valueAsNumber);
        typed.value = null;
      }}
      onBlur={() => (typed.value = null)}
    />
  );
}
