/** A bar between two areas that can be dragged, or moved with the arrow keys. */

import './Splitter.css';

import type {Signal} from '@preact/signals';
import {effect, signal} from '@preact/signals';

interface SplitterProps {
  label: string;
  /** Of the area, pixels. */
  size: number;
  onSize: (size: number) => void;
  low: number;
  high: number;
  /** Which way the pointer moves to make the area larger. */
  grows: 'right' | 'left' | 'up';
}

const KEY_PX = 16;

export function Splitter({label, size, onSize, low, high, grows}: SplitterProps) {
  const isUpright = grows !== 'up';
  const set = (value: number): void => onSize(Math.round(Math.min(Math.max(value, low), Math.max(low, high))));
  return (
    <div
      class={`splitter ${isUpright ? 'is-upright' : 'is-level'}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={isUpright ? 'vertical' : 'horizontal'}
      aria-valuenow={Math.round(size)}
      aria-valuemin={low}
      aria-valuemax={high}
      onPointerDown={(event) => drag(event, size, grows, set)}
      onKeyDown={(event) => {
        const by = {right: {ArrowRight: 1, ArrowLeft: -1}, left: {ArrowLeft: 1, ArrowRight: -1}, up: {ArrowUp: 1, ArrowDown: -1}}[grows];
        const sign = (by as Record<string, number>)[event.key];
        if (sign === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        set(size + sign * KEY_PX);
      }}
    />
  );
}

function drag(event: PointerEvent, before: number, grows: SplitterProps['grows'], set: (value: number) => void): void {
  const bar = event.currentTarget as HTMLElement;
  const from = {x: event.clientX, y: event.clientY};
  event.preventDefault();
  bar.setPointerCapture(event.pointerId);
  bar.classList.add('is-moving');
  const move = (to: PointerEvent): void => {
    const by = {right: to.clientX - from.x, left: from.x - to.clientX, up: from.y - to.clientY}[grows];
    set(before + by);
  };
  const end = (): void => {
    bar.classList.remove('is-moving');
    bar.removeEventListener('pointermove', move);
  };
  bar.addEventListener('pointermove', move);
  bar.addEventListener('lostpointercapture', end, {once: true});
}

/** A size that this browser remembers; in an iframe that may not store anything, for as long as the page is open. */
export function remembered(name: string, initial: number): Signal<number> {
  const size = signal(initial);
  try {
    const kept = Number(localStorage.getItem(`torchgraph.${name}`));
    if (kept > 0) size.value = kept;
    effect(() => localStorage.setItem(`torchgraph.${name}`, String(size.value)));
  } catch (cause) {
    if (!(cause instanceof DOMException)) throw cause;
  }
  return size;
}
