/** A labelled choice out of few. */

export interface Option {
  value: string;
  label: string;
}

interface SelectProps {
  label: string;
  value: string;
  options: readonly Option[];
  onChoose: (value: string) => void;
  /** The label is for assistive technology only. */
  isBare?: boolean;
}

export function Select({label, value, options, onChoose, isBare}: SelectProps) {
  const chosen = options.find((option) => option.value === value);
  return (
    <label class="select" title={chosen === undefined ? label : `${label}: ${chosen.label}`}>
      <span class={isBare ? 'sr-only' : 'select-label'}>{label}</span>
      <select value={value} aria-label={label} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The same choice, all options in sight. */
export function Segments({label, value, options, onChoose}: SelectProps) {
  return (
    <div class="segments" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <label key={option.value} class={option.value === value ? 'is-on' : ''} title={`${label}: ${option.label}`}>
          <input
            type="radio"
            class="sr-only"
            name={label}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChoose(option.value)}
          />
          {option.label}
        </label>
      ))}
    </div>
  );
}
