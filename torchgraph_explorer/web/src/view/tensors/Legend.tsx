/** What the colours of a tensor mean, and facts of all its elements. */

import type {JSX} from 'preact';
import type {TensorPart} from '../../api/tensors';
import {formatNumber, wholeNumber} from '../../numberText';
import {lightRange} from '../../tensors/look';
import type {Shape} from '../../tensors/look';
import {product} from '../../tensors/request';
import type {View} from '../../tensors/request';
import {gradientOf, rampOf, scaleOf} from '../../tensors/shade';
import type {Rgb, ScaleChoice} from '../../tensors/shade';
import {followInks} from './shades';

/** Between a ramp's own stops, a bent one is not straight. */
const LEGEND_STOPS = 17;

interface LegendProps {
  view: View;
  look: Shape;
  scale: ScaleChoice;
}

export function ValueLegend({view, look, scale}: LegendProps): JSX.Element | null {
  const {part} = view;
  const inks = followInks().value;
  const {summary} = part;
  const bounds = part.bounds ?? summary;
  const {low, high, isSigned} = scaleOf(bounds, part, scale);
  const ramp = isSigned ? inks.diverging : inks.sequential;
  if (summary.count === 0) return null;
  const [black, white] = look === 'grey' || look === 'rgb' ? lightRange(view, look) : [null, null];
  return (
    <div class="tensor-legend">
      {bounds.low === null && <span class="dim">nothing finite</span>}
      {bounds.low !== null && (look === 'heat' || look === 'bars') && (
        <span class="tensor-ramp" role="img" aria-label={rampText(scale, low, high, isSigned)}>
          <span>{scale === 'facet' ? 'least' : formatNumber(low)}</span>
          <i style={{background: gradientOf(rampOf(ramp, LEGEND_STOPS).map(cssOf), isSigned)}} />
          <span>{scale === 'facet' ? 'largest' : formatNumber(high)}</span>
        </span>
      )}
      {black !== null && <span class="dim">black {formatNumber(black)}, white {formatNumber(white)}</span>}
      {summary.count > elementsIn(view) && <span class="dim">{part.batch_dim === null ? 'whole tensor:' : 'all kept samples:'}</span>}
      <Bad count={summary.nan} colour={inks.nan} name="NaN" />
      <Bad count={summary.positive_infinity} colour={inks.positiveInfinity} name="+∞" />
      <Bad count={summary.negative_infinity} colour={inks.negativeInfinity} name="−∞" />
      {part.merged !== null && <span class="dim">Each cell is the mean of {part.factors.filter((one) => one > 1).join(' × ')} elements; click one to see them.</span>}
      <Facts part={part} />
    </div>
  );
}

/** How many are in the pictures: not those beside a slider's place, or outside a part that is looked at closely. */
function elementsIn({part, axes, allFacets}: View): number {
  return axes.rows.offsets.length * axes.columns.offsets.length * allFacets * product(part.factors);
}

function rampText(scale: ScaleChoice, low: number, high: number, isSigned: boolean): string {
  if (scale === 'facet') return 'Colours from the least to the largest value of each facet';
  return `Colours from ${formatNumber(low)} to ${formatNumber(high)}${isSigned ? ', zero in the middle' : ''}`;
}

function Bad({count, colour, name}: {count: number; colour: Rgb; name: string}): JSX.Element | null {
  if (count === 0) return null;
  return (
    <b class="is-bad tensor-bad">
      <i class="swatch" style={{background: cssOf(colour)}} /> {wholeNumber(count)} {name}
    </b>
  );
}

function Facts({part: {summary}}: {part: TensorPart}): JSX.Element {
  const facts: [string, number | null][] = [
    ['min', summary.low],
    ['max', summary.high],
    ['mean', summary.mean],
    ['std', summary.std],
  ];
  return (
    <dl class="tensor-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === null ? '–' : formatNumber(value)}</dd>
        </div>
      ))}
      <div>
        <dt>elements</dt>
        <dd>{wholeNumber(summary.count)}</dd>
      </div>
    </dl>
  );
}

function cssOf(colour: Rgb): string {
  return `rgb(${colour.join(' ')})`;
}
