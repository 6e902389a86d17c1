/** The x-ray on show: what was fetched of it, which stretch of time is in sight, and which modules are folded. */

import {batch, computed, effect, signal, untracked} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import {answers} from '../../api/client';
import {messageOf} from '../../api/errors';
import {latest} from '../../api/latest';
import type {XrayAnswer} from '../../api/xray';
import type {Model} from '../../model/model';
import {edgesOf, folded as foldedMatrix, wholeOf} from '../../xray/matrix';
import type {Domain} from '../../xray/matrix';
import {xrayScale} from '../../xray/scale';
import type {XrayScale} from '../../xray/scale';
import {treeOf, visibleRows} from '../../xray/tree';
import type {TreeModule, XrayRow} from '../../xray/tree';
import * as choices from '../state/choices';
import * as shown from '../state/shown';

/** Columns of the whole picture, and of a part of it. */
const MOST = 1024;
/** A growing run is asked for again after so many times what the last answer took, and at least so long. */
const PAUSE = {times: 10, least: 2000};
const AGAIN_MS = 100;

/** All of time; null before the first answer. */
export const whole: Signal<XrayAnswer | null> = signal(null);
/** Why there is no answer, as a sentence; null after one. */
export const problem: Signal<string | null> = signal(null);
/** There is a picture: a module at a step. */
export const hasCells: ReadonlySignal<boolean> = computed(() => rows.value.length > 0 && (whole.value?.first.length ?? 0) > 0);
/** The part in sight, in finer columns; null where the whole picture tells as much. */
const part: Signal<XrayAnswer | null> = signal(null);
/** The stretch of time in sight; null for all. */
export const domain: Signal<Domain | null> = choices.xrayStretch;
/** Names of folded modules. */
export const folded: Signal<ReadonlySet<string>> = signal(new Set());

/** What is drawn. */
export const xray: ReadonlySignal<XrayAnswer | null> = computed(() => {
  const [all, fine, inSight] = [whole.value, part.value, domain.value];
  if (all === null || fine === null || inSight === null || fine.statistic !== all.statistic) return all;
  const edges = edgesOf(fine);
  const {from, to} = wholeOf(edges);
  return from <= Math.max(inSight.from, wholeOf(edgesOf(all)).from) && to >= Math.min(inSight.to, all.last.at(-1) ?? 0) ? fine : all;
});

export const edges: ReadonlySignal<Float64Array> = computed(() => (xray.value === null ? new Float64Array(0) : edgesOf(xray.value)));
export const wholeDomain: ReadonlySignal<Domain> = computed(() => wholeOf(whole.value === null ? new Float64Array(0) : edgesOf(whole.value)));
export const inSight: ReadonlySignal<Domain> = computed(() => domain.value ?? wholeDomain.value);

const modules = computed(() => JSON.stringify(whole.value?.modules ?? []));
const className = computed(() => shown.data.value?.session?.class_name ?? 'model');
export const tree: ReadonlySignal<TreeModule[]> = computed(() => treeOf(JSON.parse(modules.value) as string[], className.value));
export const rows: ReadonlySignal<XrayRow[]> = computed(() => visibleRows(tree.value, folded.value));
/** The codes of the rows on show, `[rows, columns]`. */
export const matrix: ReadonlySignal<Uint16Array> = computed(() => (xray.value === null ? new Uint16Array(0) : foldedMatrix(xray.value, rows.value)));

/** Of the whole picture, so that colours stay while one zooms. */
export const scale: ReadonlySignal<XrayScale | null> = computed(() => {
  const all = whole.value;
  return all && xrayScale(all.codes, all.statistics.find(({name}) => name === all.statistic)?.is_share ?? false);
});

export function toggleFold(name: string): void {
  const next = new Set(folded.value);
  if (!next.delete(name)) next.add(name);
  folded.value = next;
}

/** Asks for the x-ray while it is shown, until the function is called that it returns. */
export function follow(model: Model): () => void {
  const asking = {whole: latest(), part: latest()};
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pause = 0;
  const ask = (): void => {
    clearTimeout(timer);
    const [begun, before, statistic] = [performance.now(), whole.peek(), choices.xrayStatistic.peek()];
    const isSame = before !== null && (statistic === null || before.statistic === statistic);
    const wanted = {statistic, from: null, to: null, most: MOST, version: isSame ? before.version : ''};
    asking.whole.start(
      (abort) => answers.xray(model.name, wanted, abort),
      (answer) => {
        pause = Math.max(PAUSE.least, PAUSE.times * (performance.now() - begun));
        problem.value = null;
        if (answer === null) return;
        whole.value = answer;
        if (!answer.is_complete) timer = setTimeout(ask, AGAIN_MS);
      },
      (cause) => {
        problem.value = `The x-ray could not be fetched: ${messageOf(cause)} Trying again.`;
        timer = setTimeout(ask, PAUSE.least);
      },
    );
  };
  const news = computed(() => JSON.stringify([model.data.value?.epoch, model.data.value?.steps.length, model.data.value?.graphs.length]));
  let lastNews = '';
  let asked = 0;
  const stopWhole = effect(() => {
    void choices.xrayStatistic.value;
    const isGrowing = lastNews !== '' && news.value !== lastNews;
    lastNews = news.value;
    clearTimeout(timer);
    const wait = isGrowing ? Math.max(0, asked + pause - performance.now()) : 0;
    timer = setTimeout(() => ((asked = performance.now()), ask()), wait);
  });
  const stopPart = effect(() => {
    const [stretch, all] = [domain.value, whole.value];
    clearTimeout(settling);
    asking.part.abort();
    if (stretch !== null && all !== null && all.unit > 1) untracked(() => askPart(model, all, stretch, asking.part));
    else part.value = null; // of another stretch, or of the record before this one
  });
  return () => {
    stopWhole();
    stopPart();
    clearTimeout(timer);
    clearTimeout(settling);
    asking.whole.abort();
    asking.part.abort();
  };
}

const SETTLED_MS = 120;
let settling: ReturnType<typeof setTimeout> | undefined;

/** When the view has come to rest, so much more of it on both sides that small moves need nothing new. */
function askPart(model: Model, {statistic}: XrayAnswer, {from, to}: Domain, asking: ReturnType<typeof latest>): void {
  const margin = (to - from) / 2;
  const wanted = {statistic, from: Math.max(0, Math.floor(from - margin)), to: Math.ceil(to + margin), most: MOST, version: ''};
  const ask = (): void => asking.insist((abort) => answers.xray(model.name, wanted, abort), take, () => undefined);
  const take = (answer: XrayAnswer | null): void => {
    part.value = answer;
    if (answer?.is_complete === false) settling = setTimeout(ask, AGAIN_MS);
  };
  settling = setTimeout(ask, SETTLED_MS);
}

/** An answer that has all cells, which the server may compute over several requests. */
export async function completed(ask: () => Promise<XrayAnswer | null>): Promise<XrayAnswer | null> {
  for (let answer = await ask(); ; answer = await ask()) {
    if (answer?.is_complete !== false) return answer;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Forgets what belongs to another model. */
export function forget(): void {
  batch(() => {
    whole.value = part.value = domain.value = problem.value = null;
    folded.value = new Set();
  });
}
