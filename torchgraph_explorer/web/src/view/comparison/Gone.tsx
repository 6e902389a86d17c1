/** Modules of the other run that have no counterpart in what is open: over the drawing, which has no place for them. */

import './comparison.css';

import type {JSX} from 'preact';
import {runLetter} from '../../comparison/choice';
import {goneHere} from './graph';
import {RunChip} from './RunChip';
import {against} from './state';

const MOST = 12;

export function Gone(): JSX.Element | null {
  const other = against.value;
  const gone = goneHere.value;
  if (other === null || gone.length === 0) return null;
  return (
    <div class="gone" data-covers="graph" role="note" aria-label={`Only in ${other.label}`}>
      <RunChip number={other.number} />
      <span>only in {runLetter(other.number)}:</span>
      {gone.slice(0, MOST).map(({name, className}) => (
        <span key={name} class="gone-module" title={`${name}, ${className}, in ${other.label}`}>
          <b>{name.slice(name.lastIndexOf('.') + 1)}</b> {className}
        </span>
      ))}
      {gone.length > MOST && <span>and {gone.length - MOST} more</span>}
    </div>
  );
}
