/** What a button opens below itself. Escape closes it, and so does whatever is pressed or focused elsewhere. */

import type {ComponentChildren, JSX, RefObject} from 'preact';
import {useEffect} from 'preact/hooks';

interface MenuProps {
  box: RefObject<HTMLDetailsElement>;
  class: string;
  /** A `summary`. */
  button: JSX.Element;
  children: ComponentChildren;
}

export function Menu({box, class: name, button, children}: MenuProps): JSX.Element {
  useEffect(() => {
    const leave = ({target}: Event): void => {
      if (box.current !== null && !box.current.contains(target as Node)) box.current.open = false;
    };
    document.addEventListener('pointerdown', leave);
    document.addEventListener('focusin', leave);
    return () => {
      document.removeEventListener('pointerdown', leave);
      document.removeEventListener('focusin', leave);
    };
  }, [box]);
  return (
    <details ref={box} class={name} onKeyDown={(event) => event.key === 'Escape' && close(event, box.current)}>
      {button}
      {children}
    </details>
  );
}

function close(event: KeyboardEvent, box: HTMLDetailsElement | null): void {
  if (!box?.open) return;
  event.stopPropagation();
  box.open = false;
  box.querySelector('summary')?.focus();
}
