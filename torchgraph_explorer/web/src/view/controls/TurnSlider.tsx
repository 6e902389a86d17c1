/** Chooses one of many calls: a slider with buttons for the call before and the next one. */

import './TurnSlider.css';

import {IconButton} from './Icon';

export interface TurnSliderProps {
  /** What is written before it. */
  label: string;
  /** Whose calls they are, for those who cannot see where it stands. */
  name: string;
  /** From 0. */
  turn: number;
  count: number;
  /** The choice in words: `413 of 999`. */
  text: string;
  onChoose: (turn: number) => void;
}

export function TurnSlider({label, name, turn, count, text, onChoose}: TurnSliderProps) {
  return (
    <span class="turn-slider">
      <span class="turn-label" title={label}>
        {label}
      </span>
      <IconButton icon="previous" label={`Call of ${name} before`} onPress={() => onChoose(turn - 1)} disabled={turn === 0} />
      <input
        type="range"
        min={0}
        max={count - 1}
        value={turn}
        aria-label={`Call of ${name}`}
        aria-valuetext={`call ${text}`}
        onInput={(event) => onChoose(Number(event.currentTarget.value))}
      />
      <IconButton icon="next" label={`Next call of ${name}`} onPress={() => onChoose(turn + 1)} disabled={turn === count - 1} />
      <output class="turn-text">{text}</output>
    </span>
  );
}
