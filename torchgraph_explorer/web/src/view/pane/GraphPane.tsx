/** The graph with its tools: where one is, what colours it, zoom, legend. */

import './GraphPane.css';

import {Fragment} from 'preact';
import {stepName} from '../../numberText';
import {trail} from '../../graph/facts';
import {callLabel} from '../../graph/labels';
import {layoutProblem} from './scene';
import {marks} from './marks';
import {canLeadOut, isAlone, leadOut, openCall} from '../state/navigate';
import * as choices from '../state/choices';
import {liveness} from '../state/quiet';
import * as shown from '../state/shown';
import {CallsBar} from './CallsBar';
import {Canvas} from './Canvas';
import type {Part} from '../state/parts';
import {DivergenceLine} from '../comparison/DivergenceLine';
import {Gone} from '../comparison/Gone';
import {FindingsButton} from '../findings/FindingsButton';
import {FirstTrouble} from '../header/FirstTrouble';
import {HeaderItems} from '../header/Header';
import {IconButton} from '../controls/Icon';
import type {IconName} from '../controls/Icon';
import {stacks, toggleStacks} from './folding';
import {Legend} from './Legend';
import {camera, fit} from './look';
import {GraphNotice} from './Notice';
import {isSearching} from '../Search';
import {SaveMenu} from './SaveMenu';
import {ViewTabs} from '../tensors/ViewTabs';
import {Select} from '../controls/Select';
import {isBlank} from '../layout/blank';
import {arrangement, isShown, over, toggle, toggleLabel} from '../layout/sides';

export function GraphPane() {
  const problem = layoutProblem.value ?? shown.model.value?.problem.value ?? null;
  const {isDocked} = arrangement.value;
  return (
    <section class="graph-pane" aria-label="Graph">
      {(!isBlank.value || !isDocked.header) && (
        <div class="pane-bar">
          <MenuButton />
          {!isBlank.value && <ViewTabs />}
          {!isBlank.value && <GraphTools />}
        </div>
      )}
      <DivergenceLine />
      <CallsBar />
      <div class="canvas-box">
        <Canvas />
        <GraphNotice />
        <Gone />
        {!isDocked.header && <TroubleOver />}
        {problem && <div class="strip-notice">{problem}</div>}
        {!isBlank.value && <ZoomButtons />}
      </div>
      {isDocked.legend && <Legend />}
      <Popover />
    </section>
  );
}

function GraphTools() {
  return (
    <>
      <DockButton part="modules" icon="left" />
      <IconButton icon="out" label="Lead out (Backspace)" onPress={leadOut} disabled={!canLeadOut.value} />
      <Breadcrumb />
      <GraphChooser />
      <IconButton icon="search" label="Search (/)" onPress={() => (isSearching.value = true)} />
      <StackButton />
      <SaveMenu />
      {!arrangement.value.isDocked.legend && <ToggleButton part="legend" icon="legend" />}
      <DockButton part="panels" icon="right" />
    </>
  );
}

function ZoomButtons() {
  return (
    <div class="zoom-buttons" data-covers="graph">
      <IconButton icon="plus" label="Zoom in (+)" onPress={() => camera.value?.zoomBy(1.3)} />
      <IconButton icon="minus" label="Zoom out (−)" onPress={() => camera.value?.zoomBy(1 / 1.3)} />
      <IconButton icon="fit" label="Fit (F)" onPress={fit} />
    </div>
  );
}

/** Draws equal siblings, such as `layers.0` to `layers.31`, as one node; only where there are some. */
function StackButton() {
  const {loose, drawn} = stacks.value;
  if (loose.length === 0 && drawn.length === 0) return null;
  return <IconButton icon="stack" label={loose.length > 0 ? 'Stack equal modules (S)' : 'Open stacks (S)'} onPress={toggleStacks} isPressed={loose.length === 0} />;
}

/** Shows what is wrong when there is no header: where NaN or infinity began, and how many findings there are. */
function TroubleOver() {
  return (
    <div class="trouble-over" data-covers="graph">
      <FirstTrouble />
      <FindingsButton />
    </div>
  );
}

/** The header's items, where it is put away; the dot tells whether the run is live. */
export function MenuButton() {
  if (arrangement.value.isDocked.header) return null;
  return (
    <span class={`menu-button connection is-${liveness.value}`}>
      <ToggleButton part="header" icon="menu" />
      <i class="dot" />
    </span>
  );
}

/** Puts a part away that stands at a side. When it is away, its rail brings it back. */
function DockButton({part, icon}: {part: Part; icon: IconName}) {
  return arrangement.value.isDocked[part] ? <ToggleButton part={part} icon={icon} /> : null;
}

function ToggleButton({part, icon}: {part: Part; icon: IconName}) {
  return <IconButton icon={icon} label={toggleLabel(part)} onPress={() => toggle(part)} isExpanded={isShown(part)} />;
}

/** What has no room beside the graph and was opened, below the buttons. */
export function Popover() {
  if (over.value === 'legend') {
    return (
      <div class="popover">
        <Legend />
      </div>
    );
  }
  if (over.value !== 'header') return null;
  return (
    <div class="popover menu" role="group" aria-label="Menu">
      <HeaderItems />
      <ViewTabs />
    </div>
  );
}

/** For a model that is not called in the same way at every step. */
function GraphChooser() {
  const graphs = shown.data.value?.graphs ?? [];
  if (graphs.length < 2) return null;
  const options = graphs.map(({graph, first_step}) => ({value: String(graph), label: `From ${stepName(first_step)}`}));
  const automatic = {value: '', label: `Automatic (from ${stepName(shown.automaticGraph.value?.first_step ?? 0)})`};
  return (
    <Select
      label="Graph"
      value={choices.graphChoice.value === null ? '' : String(choices.graphChoice.value)}
      options={[automatic, ...options]}
      onChoose={(value) => (choices.graphChoice.value = value === '' ? null : Number(value))}
    />
  );
}

function Breadcrumb() {
  const graph = shown.graph.value;
  if (!graph) return <nav class="breadcrumb" aria-label="Where you are" />;
  const calls = trail(graph, shown.inside.value);
  return (
    <nav class="breadcrumb" aria-label="Where you are">
      {!isAlone.value && <Crumb label="Calls of the model" isHere={calls.length === 0} onPress={() => openCall(null)} />}
      {calls.map((index, depth) => {
        const number = graph.calls[index]?.call ?? 0;
        const name = callLabel(graph, index, calls[depth - 1] ?? null);
        const label = number === 0 ? name : `${name} #${number + 1}`;
        return (
          <Fragment key={index}>
            {(depth > 0 || !isAlone.value) && (
              <span class="crumb-slash" aria-hidden="true">
                /
              </span>
            )}
            <Crumb label={label} isHere={depth === calls.length - 1} isBad={marks.value.calls.has(index)} onPress={() => openCall(index)} />
          </Fragment>
        );
      })}
    </nav>
  );
}

function Crumb({label, isHere, isBad = false, onPress}: {label: string; isHere: boolean; isBad?: boolean; onPress: () => void}) {
  return (
    <button type="button" class={`crumb${isBad ? ' is-bad' : ''}`} aria-current={isHere ? 'location' : undefined} title={label} onClick={onPress}>
      {label}
    </button>
  );
}
