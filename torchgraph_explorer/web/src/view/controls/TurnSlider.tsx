/** Chooses one of many calls: a slider with buttons for the call before and the next one. */

import './TurnSlider.css';

import {IconButton} from './Icon';

export interface TurnSliderProps {
  /** Of what. */
  label: string;
  /** From 0. */
  turn: number;
  count: number;
  /** The choice in words: `413 of 999`. */
  text: string;
  onChoose: (turn: number) => void;
}

export function TurnSlider({label, turn, count, text, onChoose}: TurnSliderProps) {
  return (
    <span class="turn-slider">
      <span class="turn-label" title={label}>
        {label}
      </span>
      <IconButton icon="previous" label={`Call of ${label} before`} onPress={() => onChoose(turn - 1)} disabled={turn === 0} />
      <input
        type="range"
        min={0}
        max={count - 1}
        value={turn}
        aria-label={`Call of ${label}`}
        aria-valuetext={`call ${text}`}
        onInput={(event) => onChoose(Number(event.currentTarget.value))}
      />
      <IconButton icon="next" label={`Next call of ${label}`} onPress={() => onChoose(turn + 1)} disabled={turn === count - 1} />
      <output class="turn-text">{text}</output>
    </span>
  );
}
