/** The whole screen. */

import './App.css';

import {useEffect, useLayoutEffect} from 'preact/hooks';
import {wholeNumber} from '../numberText';
import {Tip} from '../charts/Tip';
import {tip} from './panels/setting';
import {Panels} from './panels/Panels';
import {marks} from './pane/marks';
import * as choices from './state/choices';
import * as shown from './state/shown';
import {ChartOptions} from './panels/ChartOptions';
import {isChoosingRuns, RunsDialog} from './comparison/RunsDialog';
import {Details} from './outline/Details';
import {FindingsList} from './findings/FindingsList';
import {dragged} from './pane/drag';
import {GraphPane} from './pane/GraphPane';
import {Ended} from './header/Ended';
import {Header} from './header/Header';
import {Help, isHelpOpen} from './Help';
import {coverChanged} from './pane/look';
import {pageKeys} from './pageKeys';
import {Outline} from './outline/Outline';
import {isBlank} from './layout/blank';
import {Rail} from './layout/Rail';
import {isSearching, Search} from './Search';
import {arrangement, measureWindow, modulesWidth, over, panelsShare, windowSize} from './layout/sides';
import {remembered, Splitter} from './controls/Splitter';
import {NetworkPage} from './tensors/NetworkPage';
import {TensorsPage} from './tensors/TensorsPage';
import {TimeBar} from './time/TimeBar';
import {TimeMarks} from './time/TimeMarks';
import {Tooltip} from './pane/Tooltip';

const facts = remembered('facts', 300);
const LEAST_GRAPH = 300;
const OUTLINE_AND_BARS = 240;

export function App() {
  useEffect(() => {
    addEventListener('resize', measureWindow);
    addEventListener('keydown', pageKeys);
    return () => {
      removeEventListener('resize', measureWindow);
      removeEventListener('keydown', pageKeys);
    };
  }, []);
  useEffect(() => {
    document.title = [choices.model.value, choices.run.value, 'torchgraph'].filter(Boolean).join(' · ');
  }, [choices.model.value, choices.run.value]);
  useLayoutEffect(coverChanged, [over.value]);
  const {isDocked, isCompact} = arrangement.value;
  return (
    <>
      <div class="app" data-compact={isCompact || undefined} inert={isSearching.value || isHelpOpen.value || isChoosingRuns.value}>
        {isDocked.header && <Header />}
        <Ended />
        <main class="columns">
          <h1 class="sr-only">torchgraph</h1>
          <Columns />
        </main>
        {isDocked.steps ? <TimeBar /> : <StepsAway />}
      </div>
      <Tooltip />
      <Tip tip={tip} />
      <Ghost />
      <Search />
      <Help />
      <RunsDialog />
    </>
  );
}

/** The page that was chosen. */
function Columns() {
  const {isDocked} = arrangement.value;
  if (isBlank.value) return <GraphPane />;
  if (choices.view.value === 'tensors' || choices.view.value === 'own') return <TensorsPage />;
  if (choices.view.value === 'network') return <NetworkPage />;
  return (
    <>
      {isDocked.modules ? <DockedModules /> : <ModulesRail />}
      <GraphPane />
      {isDocked.panels ? <DockedPanels /> : <PanelsRail />}
      <Drawer />
    </>
  );
}

function DockedModules() {
  return (
    <>
      <Modules width={modulesWidth.value} />
      <Splitter
        label="Width of the outline"
        size={modulesWidth.value}
        onSize={(size) => (modulesWidth.value = size)}
        low={160}
        high={480}
        grows="right"
      />
    </>
  );
}

function Modules({width}: {width: number}) {
  const {height} = windowSize.value;
  return (
    <div class="sidebar" style={{width: `${width}px`}}>
      <FindingsList />
      <Outline />
      <Splitter
        label="Height of the facts"
        size={Math.min(facts.value, Math.max(80, height - OUTLINE_AND_BARS))}
        onSize={(size) => (facts.value = size)}
        low={80}
        high={Math.max(80, height - OUTLINE_AND_BARS)}
        grows="up"
      />
      <div class="details-box" style={{height: `${facts.value}px`}}>
        <Details />
      </div>
    </div>
  );
}

function DockedPanels() {
  const left = arrangement.value.isDocked.modules ? modulesWidth.value : 0;
  const total = windowSize.value.width - left;
  const {panelsWidth} = arrangement.value;
  return (
    <>
      <Splitter
        label="Width of the panels"
        size={panelsWidth}
        onSize={(pixels) => (panelsShare.value = pixels / total)}
        low={264}
        high={total - LEAST_GRAPH}
        grows="left"
      />
      <PanelArea width={panelsWidth} />
    </>
  );
}

function PanelArea({width}: {width: number}) {
  const target = dragged.value === null ? '' : dragged.value.isOverPanels ? ' is-target is-over' : ' is-target';
  return (
    <aside class={`panel-area${target}`} data-drop="panels" aria-label="Panels" style={{width: `${width}px`}}>
      {choices.pins.value.length > 0 && <ChartOptions />}
      <div class="panel-content">
        <Panels />
      </div>
      {dragged.value && <div class="drop-hint">Drop to pin {dragged.value.label}</div>}
    </aside>
  );
}

function ModulesRail() {
  return (
    <Rail part="modules" icon="left" title="Modules">
      {marks.value.modules.size > 0 && <i class="swatch swatch-bad" />}
    </Rail>
  );
}

function PanelsRail() {
  return (
    <Rail part="panels" icon="right" title="Panels" isTarget={over.value !== 'panels'}>
      {choices.pins.value.map(({key, colour}) => (
        <i key={key} class="swatch" style={{background: `var(--pin-${colour})`}} />
      ))}
      {dragged.value && over.value !== 'panels' && <b class="drop-hint">Drop to pin</b>}
    </Rail>
  );
}

/** The modules or the panels over the graph, where there is no room beside it. */
function Drawer() {
  const {modulesWidth: modules, panelsWidth: panels} = arrangement.value;
  if (over.value !== 'modules' && over.value !== 'panels') return null;
  return (
    <div class={`drawer drawer-${over.value}`} data-covers="graph">
      {over.value === 'modules' ? <Modules width={modules} /> : <PanelArea width={panels} />}
    </div>
  );
}

function StepsAway() {
  const step = shown.step.value;
  return (
    <div class="steps-away">
      {over.value === 'steps' && <TimeBar />}
      <Rail part="steps" icon="up" title={step === null ? 'Steps' : `Step ${wholeNumber(step)}`}>
        <TimeMarks />
      </Rail>
    </div>
  );
}

/** What is being dragged, beside the pointer. */
function Ghost() {
  const now = dragged.value;
  if (!now) return null;
  return (
    <div class="ghost" style={{transform: `translate(${now.x + 12}px, ${now.y + 8}px)`}}>
      {now.label}
    </div>
  );
}
