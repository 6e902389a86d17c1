/** What remains of a part of the screen that was put away: it brings the part back. */

import './Rail.css';

import type {ComponentChildren} from 'preact';
import type {Part} from '../state/parts';
import {Icon} from '../controls/Icon';
import type {IconName} from '../controls/Icon';
import {isShown, toggle, toggleLabel} from './sides';

interface RailProps {
  part: Part;
  icon: IconName;
  title: string;
  /** Nodes can be dropped here. */
  isTarget?: boolean;
  children?: ComponentChildren;
}

export function Rail({part, icon, title, isTarget = false, children}: RailProps) {
  return (
    <button
      type="button"
      class={`rail rail-${part}`}
      aria-label={toggleLabel(part)}
      aria-expanded={isShown(part)}
      title={toggleLabel(part)}
      data-drop={isTarget ? 'panels' : undefined}
      onClick={() => toggle(part)}
    >
      <Icon name={icon} />
      <span>{title}</span>
      {children}
    </button>
  );
}
