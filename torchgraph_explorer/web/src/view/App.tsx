/** The whole screen. */

import {computed, signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {Tip} from '../charts/Tip';
import {Panels} from '../panels/Panels';
import * as store from '../state/store';
import {ChartOptions} from './ChartOptions';
import {Details} from './Details';
import {dragged} from './drag';
import {GraphPane} from './GraphPane';
import {Header} from './Header';
import {Help, isHelpOpen} from './Help';
import {pageKeys} from './pageKeys';
import {Outline} from './Outline';
import {isSearching, Search} from './Search';
import {remembered, Splitter} from './Splitter';
import {TimeBar} from './TimeBar';
import {Tooltip} from './Tooltip';

const sidebar = remembered('sidebar', 248);
const facts = remembered('facts', 300);
const panels = remembered('panels', 0.52);
const windowWidth = signal(window.innerWidth);
const windowHeight = signal(window.innerHeight);
const NARROW_PANELS = 248;
const LEAST_GRAPH = 300;
const OUTLINE_AND_BARS = 240;

const factsHeight = computed(() => Math.min(facts.value, windowHeight.value - OUTLINE_AND_BARS));

/** The panels' width in pixels: a share of the window once something is pinned. */
const panelsWidth = computed(() => {
  const room = windowWidth.value - sidebar.value - LEAST_GRAPH;
  const wanted = store.pins.value.length === 0 ? NARROW_PANELS : panels.value * (windowWidth.value - sidebar.value);
  return Math.max(200, Math.min(wanted, room));
});

export function App() {
  useEffect(() => {
    const resize = (): void => {
      windowWidth.value = window.innerWidth;
      windowHeight.value = window.innerHeight;
    };
    addEventListener('resize', resize);
    addEventListener('keydown', pageKeys);
    return () => {
      removeEventListener('resize', resize);
      removeEventListener('keydown', pageKeys);
    };
  }, []);
  useEffect(() => {
    document.title = [store.model.value, store.run.value, 'torchgraph'].filter(Boolean).join(' · ');
  }, [store.model.value, store.run.value]);
  return (
    <>
      <div class="app" inert={isSearching.value || isHelpOpen.value}>
        <Header />
        <main class="columns">
          <div class="sidebar" style={{width: `${sidebar.value}px`}}>
            <Outline />
            <Splitter
              label="Height of the facts"
              size={factsHeight.value}
              onSize={(size) => (facts.value = size)}
              low={80}
              high={windowHeight.value - OUTLINE_AND_BARS}
              grows="up"
            />
            <div class="details-box" style={{height: `${factsHeight.value}px`}}>
              <Details />
            </div>
          </div>
          <Splitter
            label="Width of the outline"
            size={sidebar.value}
            onSize={(size) => (sidebar.value = size)}
            low={160}
            high={480}
            grows="right"
          />
          <GraphPane />
          {store.pins.value.length > 0 && <PanelSplitter />}
          <PanelArea />
        </main>
        <TimeBar />
      </div>
      <Tooltip />
      <Tip />
      <Ghost />
      <Search />
      <Help />
    </>
  );
}

function PanelSplitter() {
  const total = windowWidth.value - sidebar.value;
  return (
    <Splitter
      label="Width of the panels"
      size={panelsWidth.value}
      onSize={(pixels) => (panels.value = pixels / total)}
      low={240}
      high={total - LEAST_GRAPH}
      grows="left"
    />
  );
}

function PanelArea() {
  const target = dragged.value === null ? '' : dragged.value.isOverPanels ? ' is-target is-over' : ' is-target';
  return (
    <aside class={`panel-area${target}`} data-drop="panels" aria-label="Panels" style={{width: `${panelsWidth.value}px`}}>
      {store.pins.value.length > 0 && <ChartOptions />}
      <div class="panel-content">
        <Panels />
      </div>
      {dragged.value && <div class="drop-hint">Drop to pin {dragged.value.label}</div>}
    </aside>
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
