/** The one tooltip of all strips, near the pointer. */

import type {ReadonlySignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';

import type {Fact} from './tipFacts';

export interface TipContent {
  /** Of the pointer, in the window. */
  x: number;
  y: number;
  title: string;
  facts: readonly Fact[];
}

const DISTANCE = 14;

/**
 * Stands beside the pointer, on the side that has room. `tip` is null while the pointer is on no strip. Hidden from screen
 * readers: the strips tell the same.
 */
export function Tip({tip}: {tip: ReadonlySignal<TipContent | null>}): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  const content = tip.value;
  useLayoutEffect(() => {
    if (content !== null && box.current !== null) place(box.current, content);
  });
  if (content === null) return null;
  return (
    <div class="tip" ref={box} aria-hidden="true">
      <strong>{content.title}</strong>
      <dl>
        {content.facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function place(box: HTMLElement, {x, y}: TipContent): void {
  const {width, height} = box.getBoundingClientRect();
  const left = x + DISTANCE + width <= window.innerWidth ? x + DISTANCE : x - DISTANCE - width;
  const top = y + DISTANCE + height <= window.innerHeight ? y + DISTANCE : y - DISTANCE - height;
  box.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
}
