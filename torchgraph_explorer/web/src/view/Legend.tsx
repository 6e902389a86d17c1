/** What colours the graph, and what its colours and lines mean. */

import {colourAt} from '../graph/colours';
import {FAMILIES, familyOf} from '../graph/families';
import type {Family} from '../graph/families';
import {nodeMeasure, nodeValues, openable, scene, valueScale} from '../graph/scene';
import {formatNumber, NODE_MEASURES} from '../state/measures';
import * as store from '../state/store';
import {IconButton} from './Icon';
import {Select} from './Select';
import {arrangement, toggle, toggleLabel} from './sides';

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
        options={COLOURS}
        onChoose={(value) => (store.colourBy.value = value)}
      />
      {nodeMeasure.value ? <ScaleLegend /> : <ClassLegend />}
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
  const isPartial = nodeValues.value.size < (scene.value?.layout.nodes.length ?? 0);
  return (
    <div class="legend-scale">
      {scale ? (
        <>
          <span>{formatNumber(scale.low)}</span>
          <div
            class="legend-ramp"
            style={{background: `linear-gradient(to right, ${STOPS.map((t) => colourAt(t, scale.isSigned)).join(', ')})`}}
          />
          <span>{formatNumber(scale.high)}</span>
          {scale.isLog && <span class="dim">logarithmic</span>}
        </>
      ) : (
        <span class="dim">No node of this drawing has it at this step.</span>
      )}
      {isPartial && (
        <div class="legend-item">
          <i class="swatch swatch-hatch" />
          no data
        </div>
      )}
    </div>
  );
}
