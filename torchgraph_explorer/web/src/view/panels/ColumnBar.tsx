/** The names of the columns, as long as some of them are out of sight: a press leads to one. */

import {useSignal} from '@preact/signals';
import type {JSX, RefObject} from 'preact';
import {useLayoutEffect} from 'preact/hooks';

/** Between two columns, in pixels. */
const GAP_PX = 8;
/** So much of a column counts as in sight. */
const IN_SIGHT = 0.9;

interface Entry {
  name: string;
  /** Of its pin; empty without one. */
  colour: string;
  isInSight: boolean;
}

export function ColumnBar({pane}: {pane: RefObject<HTMLDivElement>}): JSX.Element | null {
  const entries = useSignal<readonly Entry[]>([]);
  const measure = (): void => {
    const box = pane.current;
    const now = box === null ? [] : columnsOf(box).map((column) => entryOf(box, column));
    if (JSON.stringify(now) !== JSON.stringify(entries.peek())) entries.value = now;
  };
  useLayoutEffect(measure); // the name of a column can be that of another call now
  useLayoutEffect(() => {
    const box = pane.current;
    if (box === null) return undefined;
    const observer = new ResizeObserver(measure);
    const observe = (): void => {
      observer.disconnect();
      [box, ...columnsOf(box)].forEach((one) => observer.observe(one));
    };
    const changes = new MutationObserver(observe);
    changes.observe(box, {childList: true});
    box.addEventListener('scroll', measure, {passive: true});
    observe();
    return () => {
      observer.disconnect();
      changes.disconnect();
      box.removeEventListener('scroll', measure);
    };
  }, []);
  if (entries.value.every(({isInSight}) => isInSight)) return null;
  return (
    <nav class="column-bar" aria-label="Columns">
      {entries.value.map(({name, colour, isInSight}, at) => (
        <button
          key={at}
          type="button"
          class={isInSight ? 'is-in-sight' : ''}
          title={isInSight ? name : `Show ${name}`}
          aria-current={isInSight}
          onClick={() => pane.current && scrollTo(pane.current, columnsOf(pane.current)[at])}
        >
          {colour !== '' && <i style={{background: colour}} aria-hidden="true" />}
          <span class="column-name">
            <bdi>{name}</bdi>
          </span>
        </button>
      ))}
    </nav>
  );
}

function columnsOf(pane: HTMLElement): HTMLElement[] {
  return [...pane.children].filter((one): one is HTMLElement => one instanceof HTMLElement && one.offsetWidth > 0);
}

function entryOf(pane: HTMLElement, column: HTMLElement): Entry {
  const begin = Math.max(column.offsetLeft, pane.scrollLeft);
  const end = Math.min(column.offsetLeft + column.offsetWidth, pane.scrollLeft + pane.clientWidth);
  const own = column.querySelector('.panel-name')?.textContent ?? ''; // of a pin
  const name = own === '' ? (column.getAttribute('aria-label') ?? '') : [own, column.querySelector('.panel-call')?.textContent].filter(Boolean).join(' ');
  return {name, colour: column.style.getPropertyValue('--pin'), isInSight: end - begin >= IN_SIGHT * Math.min(column.offsetWidth, pane.clientWidth)};
}

/** Scrolls as little as shows the whole column, or its left side where it is wider than the pane. */
export function scrollTo(pane: HTMLElement, column: HTMLElement | undefined): void {
  if (column === undefined) return;
  const [left, right] = [column.offsetLeft - GAP_PX, column.offsetLeft + column.offsetWidth + GAP_PX];
  if (right > pane.scrollLeft + pane.clientWidth) pane.scrollLeft = right - pane.clientWidth;
  if (left < pane.scrollLeft) pane.scrollLeft = left;
}
