/** What colours the graph, and what its colours and lines mean. */

import './Legend.css';

import {colourAt, troubleColourAt} from '../../graph/colours';
import {WIDEST} from '../../graph/edges';
import {FAMILIES, familyOf} from '../../graph/families';
import type {Family} from '../../graph/families';
import {differenceMeasures} from '../comparison/graph';
import {stepMeasures} from '../comparison/steps';
import {costMeasures, nodeMeasure, openable, parameterMeasures, scene, stateCounts, valueScale} from './scene';
import {areFlowsKnown, edgeWidths, missingCount} from './flows';
import {marks} from './marks';
import {counted, formatNumber} from '../../numberText';
import {NODE_MEASURES} from '../../statistics';
import * as choices from '../state/choices';
import {IconButton} from '../controls/Icon';
import {Select} from '../controls/Select';
import {arrangement, toggle, toggleLabel} from '../layout/sides';

const COLOURS = [{value: 'class', label: 'Class'}, ...NODE_MEASURES.map(({name, label}) => ({value: name, label}))];
const STOPS = [0, 0.25, 0.5, 0.75, 1];

export function Legend() {
  const now = scene.value;
  if (!now) return null;
  const edges = now.layout.edges.map(({edge}) => now.graph.edges[edge]);
  return (
    <div class="legend" role="group" aria-label="Legend">
      <Select
        label="Colour"
        value={nodeMeasure.value?.name ?? 'class'}
        options={[...COLOURS, ...[...parameterMeasures.value, ...costMeasures.value, ...differenceMeasures.value, ...stepMeasures.value].map(({name, label}) => ({value: name, label}))]}
        onChoose={(value) => (choices.colourBy.value = value)}
      />
      {nodeMeasure.value ? <ScaleLegend /> : <ClassLegend />}
      <MarkLegend />
      {edges.some((edge) => edge?.gradient) && <WidthLegend />}
      {edges.some((edge) => edge && !edge.gradient) && (
        <div class="legend-item" title="Data flows here, but no gradient comes back">
          <svg width="22" height="8" aria-hidden="true">
            <line class="edge no-gradient" x1="0" y1="4" x2="22" y2="4" />
          </svg>
          data, no gradient
        </div>
      )}
      {now.layout.approximate && <div class="dim">{now.layout.approximate}</div>}
      {arrangement.value.isDocked.legend && (
        <IconButton icon="down" label={toggleLabel('legend')} onPress={() => toggle('legend')} isExpanded />
      )}
    </div>
  );
}

/** What the widths of edges mean at this step. */
function WidthLegend() {
  const scale = edgeWidths.value;
  const isShown = choices.areWidthsShown.value;
  const [low, high] = [formatNumber(scale?.low ?? 0), formatNumber(scale?.high ?? 0)];
  return (
    <>
      <Select
        label="Width"
        value={isShown ? 'gradient' : 'none'}
        options={[
          {value: 'gradient', label: 'Gradient'},
          {value: 'none', label: 'None'},
        ]}
        onChoose={(value) => (choices.areWidthsShown.value = value === 'gradient')}
      />
      {isShown && scale !== null && (
        <div class="legend-item legend-widths" title="Norm of the gradient that comes back along an edge at this step; the scale is logarithmic, and that of the whole graph">
          {low !== high && <span>{low}</span>}
          <svg width="44" height="10" aria-hidden="true">
            <path class="legend-wedge" d={`M0,${5 - scale.at(scale.low) / 2}L44,${5 - WIDEST / 2}V${5 + WIDEST / 2}L0,${5 + scale.at(scale.low) / 2}z`} />
          </svg>
          <span>{high}</span>
        </div>
      )}
      {isShown && !areFlowsKnown.value && <span class="dim">The gradient along edges was not recorded.</span>}
      {isShown && areFlowsKnown.value && missingCount.value > 0 && (
        <div class="legend-item" title="Gradient flows along them, and how much was not recorded">
          <svg width="22" height="8" aria-hidden="true">
            <line class="edge is-missing" x1="0" y1="4" x2="22" y2="4" />
          </svg>
          not recorded
          <span class="dim">{counted(missingCount.value, 'edge')}</span>
        </div>
      )}
    </>
  );
}

function ClassLegend() {
  return (
    <>
      {familiesOnShow().map((family) => (
        <div key={family} class="legend-item">
          <i class="swatch" style={{background: `var(--family-${family})`}} />
          {family}
        </div>
      ))}
    </>
  );
}

function familiesOnShow(): Family[] {
  const found = new Set<Family>();
  for (const {node} of scene.value?.layout.nodes ?? []) {
    const call = scene.value?.graph.nodes[node]?.call ?? null;
    const module = call === null ? undefined : scene.value?.graph.modules[scene.value.graph.calls[call]?.module ?? -1];
    if (call !== null && module) found.add(familyOf(module.class_name, openable.value.has(call)));
  }
  return FAMILIES.filter((family) => found.has(family));
}

function ScaleLegend() {
  const scale = valueScale.value;
  const {zero, nonfinite, empty, missing} = stateCounts.value;
  const colour = (t: number): string => (nodeMeasure.value?.isCount ? troubleColourAt(t) : colourAt(t, scale?.isSigned ?? false));
  return (
    <div class="legend-scale">
      {scale ? (
        <>
          <span>{formatNumber(scale.low)}</span>
          <div
            class="legend-ramp"
            style={{background: `linear-gradient(to right, ${STOPS.map(colour).join(', ')})`}}
          />
          <span>{formatNumber(scale.high)}</span>
          {scale.isLog && <span class="dim">logarithmic</span>}
        </>
      ) : (
        <span class="dim">{withoutScale(stateCounts.value)}</span>
      )}
      <Look name="zero" text="zero" count={zero} />
      <Look name="bad" text="not finite" count={nonfinite} />
      <Look name="empty" text={nodeMeasure.value?.empty ?? 'no elements'} count={empty} />
      <Look name="hatch" text="not recorded" count={missing} />
    </div>
  );
}

/** Why there is no value on the scale. */
function withoutScale({zero, nonfinite}: {zero: number; nonfinite: number}): string {
  if (nonfinite > 0) return `Not finite at this step in ${counted(nonfinite, 'node')}.`;
  return zero > 0 ? 'All 0 at this step.' : 'Recorded of no node of this drawing at this step.';
}

/** A look of its own, beside the scale: what it means, and how many nodes have it. */
function Look({name, text, count}: {name: string; text: string; count: number}) {
  if (count === 0) return null;
  return (
    <div class="legend-item">
      <i class={`swatch swatch-${name}`} />
      {text}
      <span class="dim">{counted(count, 'node')}</span>
    </div>
  );
}

/** Nodes of this drawing that are marked, in whatever colouring. */
function MarkLegend() {
  const count = (scene.value?.layout.nodes ?? []).filter(({node}) => marks.value.nodes.has(node)).length;
  if (nodeMeasure.value === null) return <Look name="bad" text="NaN or infinity" count={count} />;
  const isTold = count === stateCounts.value.nonfinite;
  return isTold ? null : <Look name="bad" text="NaN or infinity in some tensor" count={count} />;
}
