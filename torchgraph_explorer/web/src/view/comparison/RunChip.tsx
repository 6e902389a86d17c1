/** A run's letter in its colour. */

import type {JSX} from 'preact';
import {runColour, runLetter} from '../../comparison/choice';

export function RunChip({number}: {number: number}): JSX.Element {
  return (
    <b class="run-chip" style={{'--run': runColour(number)}}>
      {runLetter(number)}
    </b>
  );
}
