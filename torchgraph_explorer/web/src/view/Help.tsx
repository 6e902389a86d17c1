/** The keys, and what the screen means. */

import './Help.css';
import './dialog.css';

import {signal} from '@preact/signals';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {PARTS, partKey} from './state/parts';
import {giveFocus} from './controls/focus';
import {IconButton} from './controls/Icon';

export const isHelpOpen = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'Search a call by name or class, or by a regular expression'],
  ['← ↑ ↓ →', 'Select the next node'],
  ['Enter, double click', "Open a call's inside"],
  ['Backspace', 'Go out of it'],
  ['P, or drag to the right', "Pin: show the node's histograms"],
  ['F', 'Fit the graph'],
  ['S', 'Stack equal modules, or open the stacks'],
  ['+ −, wheel', 'Zoom'],
  [', .', 'Step back, step forward'],
  ['L', 'Follow the latest step'],
  ['C', 'Compare with other runs'],
  [PARTS.map(partKey).join(' '), `Show or hide: ${PARTS.join(', ')}`],
  ['j k', 'Tensors: next, previous tensor'],
  [', .  [ ]  ; \'  ( )', 'Tensors: kept step, sample, call, label, back and forth'],
  ['g  r', 'Tensors: value or gradient, next tensor of the module'],
  ['T', 'Light, dark or the system’s theme'],
  ['Esc', 'Close, or select nothing'],
  ['?', 'This help'],
];

export function Help() {
  return isHelpOpen.value ? <HelpBox /> : null;
}

function HelpBox() {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement);
  useLayoutEffect(() => {
    box.current?.focus();
    const back = before.current;
    return () => giveFocus(back);
  }, []);
  return (
    <div class="overlay" onPointerDown={(event) => event.target === event.currentTarget && close()}>
      <div
        ref={box}
        class="help"
        role="dialog"
        aria-modal="true"
        aria-label="Keys and help"
        tabIndex={-1}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === 'Escape') close();
        }}
      >
        <header>
          <h2>Keys</h2>
          <IconButton icon="close" label="Close (Esc)" onPress={close} />
        </header>
        <dl>
          {KEYS.map(([key, text]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <p class="dim">
          A box with a second edge behind it has an inside. Round boxes are the inputs, outputs and attached tensors of the open
          call. A dashed line carries data but no gradient. Red and hatched is what holds NaN or infinity at this step; the header leads to
          where that began. A mark below the time bar is an update that was skipped. The address holds everything you chose: copy it to share this screen.
        </p>
      </div>
    </div>
  );
}

function close(): void {
  isHelpOpen.value = false;
}
