/** How severe something is, by shape and colour. */

import type {Severity} from '../../api/types';

const SHAPES: Record<Severity, {ground: string; sign: string}> = {
  error: {ground: 'M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z', sign: 'M5.300 5.300l5.400 5.400M10.700 5.300l-5.400 5.400'},
  warning: {ground: 'M8 1.200 15.500 14.500H.500z', sign: 'M8 6v4M8 12.200v.100'},
  info: {ground: 'M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z', sign: 'M8 7.300v4.200M8 4.700v.100'},
};

export function SeverityIcon({severity}: {severity: Severity}) {
  const {ground, sign} = SHAPES[severity];
  return (
    <svg class={`severity is-${severity}`} viewBox="0 0 16 16" width="14" height="14" role="img" aria-label={severity}>
      <path class="severity-ground" d={ground} />
      <path class="severity-sign" d={sign} />
    </svg>
  );
}
