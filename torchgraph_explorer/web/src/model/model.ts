/** One model of one run: what the server has answered about it so far. Several models may be open at a time. */

import {computed, effect, signal} from '@preact/signals';
import type {ReadonlySignal, Signal} from '@preact/signals';
import type {Answers, Known, ModelName, WantedLayout} from '../api/answers';
import {keepCurrent} from '../api/current';
import {messageOf} from '../api/errors';
import type {Findings, GraphInfo, Layout, ModuleGraph, NonFinite, StepStatistics} from '../api/types';
import {frameAtStep} from '../steps';
import {CloseUps} from './closeUps';
import {automaticGraph, graphNamed} from './data';
import type {ModelData} from './data';
import {ModelFindings} from './findings';
import {Histories} from './histories';
import {NonFiniteSteps} from './nonfinite';
import {Scalars} from './scalars';
import {applyUpdates, joinedUpdates, knownAfter} from './updates';

/** What the user chose that decides what is fetched of a model. Models that are compared share it. */
export interface Wishes {
  /** The chosen step; null follows the latest. A model that has not recorded it shows its last one before. */
  step: ReadonlySignal<number | null>;
  /** The chosen graph; null leaves it to the step. */
  graph: ReadonlySignal<number | null>;
  /** How many entries of a history can be shown. */
  mostBins: ReadonlySignal<number>;
}

export class Model {
  readonly #data = signal<ModelData | null>(null);
  readonly #graph = signal<ModuleGraph | null>(null);
  readonly #statistics = signal<StepStatistics | null>(null);
  readonly #problem = signal<string | null>(null);
  readonly #nonfinite: NonFiniteSteps;
  readonly #findings: ModelFindings;
  readonly #closing: (() => void)[];

  /** The number of the frame on show; null before the first. */
  readonly frame: ReadonlySignal<number | null>;
  /** The step on show; null before the first. */
  readonly step: ReadonlySignal<number | null>;
  /** The graph unless the user chooses one. */
  readonly automaticGraph: ReadonlySignal<GraphInfo | null>;
  /** Statistics of every series at the step on show; those of an earlier one until they have come; null of another record. */
  readonly statistics: ReadonlySignal<StepStatistics | null>;
  /** The graph to show. */
  readonly graphInfo: ReadonlySignal<GraphInfo | null>;
  readonly scalars: Scalars;
  readonly histories: Histories;
  /** The frame on show of series in whose histories frames are merged. */
  readonly closeUps: CloseUps;

  constructor(
    readonly name: ModelName,
    private readonly wishes: Wishes,
    private readonly answers: Answers,
    /** Another choice of the same model's steps: its graph is shown until that of this one has come. */
    before: Model | null = null,
  ) {
    this.#graph.value = before?.graph.peek() ?? null;
    this.frame = computed(() => frameOnShow(this.#data.value, wishes.step.value));
    this.step = computed(() => this.#data.value?.steps[this.frame.value ?? -1] ?? null);
    this.statistics = computed(() => (this.#statistics.value?.epoch === this.#data.value?.epoch ? this.#statistics.value : null));
    const chosenFrame = computed(() => (wishes.step.value === null ? null : this.frame.value));
    this.automaticGraph = computed(() => this.#data.value && automaticGraph(this.#data.value, chosenFrame.value));
    this.graphInfo = computed(() => (this.#data.value && graphNamed(this.#data.value, wishes.graph.value)) ?? this.automaticGraph.value);
    this.#nonfinite = new NonFiniteSteps(this.#data, (known, abort) => answers.nonfinite(name, known, abort));
    this.scalars = new Scalars((wanted, abort) => answers.scalars(name, wanted, abort));
    this.#findings = this.#openFindings(before);
    this.histories = this.#openHistories();
    this.closeUps = this.#openCloseUps();
    this.#closing = [
      ...[this.#followGraph(), this.#followStep()],
      ...[this.#nonfinite, this.#findings, this.scalars, this.histories, this.closeUps].map((one) => () => one.close()),
    ];
  }

  /** Everything but graphs, histograms and statistics; null before the first answer. */
  get data(): ReadonlySignal<ModelData | null> {
    return this.#data;
  }

  /** The graph to show; an earlier one until that has come, if there is one. */
  get graph(): ReadonlySignal<ModuleGraph | null> {
    return this.#graph;
  }

  /** Where there is NaN or infinity, as far as it is known. */
  get nonfinite(): ReadonlySignal<NonFinite | null> {
    return this.#nonfinite.known;
  }

  /** Why findings could not be asked for, as a sentence; null once they have come. */
  get findingsProblem(): ReadonlySignal<string | null> {
    return this.#findings.problem;
  }

  /** What the rules say, at the steps of all optimizers; null before the first answer. */
  get findings(): ReadonlySignal<Findings | null> {
    return this.#findings.known;
  }

  /** Why the graph or the statistics are not up to date, as a sentence. */
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }

  /** Asks once what is new. */
  async update(abort: AbortSignal): Promise<void> {
    let updates = await this.answers.updates(this.name, this.#known(), abort);
    while (updates.more) updates = joinedUpdates(updates, await this.answers.updates(this.name, knownAfter(updates), abort));
    this.#data.value = applyUpdates(this.#data.peek(), updates);
    await this.scalars.update(abort);
  }

  /** Where the nodes inside call `inside` stand; null is the top. */
  layout(wanted: WantedLayout, abort: AbortSignal): Promise<Layout> {
    return this.answers.layout(this.name, wanted, abort);
  }

  /** Ends all requests. */
  close(): void {
    this.#closing.forEach((close) => close());
  }

  #known(): Known {
    const data = this.#data.peek();
    if (data === null) return {epoch: -1, frames: 0, series: 0};
    return {epoch: data.epoch, frames: data.steps.length, series: data.series.length};
  }

  #openFindings(before: Model | null): ModelFindings {
    const news = computed(() => this.#data.value && [this.#data.value, this.scalars.data.value]);
    return new ModelFindings(news, (version, abort) => this.answers.findings(this.name, version, abort), before?.findings.peek() ?? null);
  }

  #openHistories(): Histories {
    const source = computed(() => {
      const data = this.#data.value;
      return data && {model: this.name, epoch: data.epoch, frames: data.steps.length, most: this.wishes.mostBins.value};
    });
    return new Histories(source, this.answers.history);
  }

  #openCloseUps(): CloseUps {
    const chosen = computed(() => {
      const [data, frame] = [this.#data.value, this.frame.value];
      return data === null || frame === null ? null : {model: this.name, epoch: data.epoch, frame, isLatest: frame === data.steps.length - 1};
    });
    return new CloseUps(chosen, this.answers.history);
  }

  #followGraph(): () => void {
    const want = keepCurrent<ModuleGraph>(this.#telling('The graph'));
    const stop = effect(() => {
      const info = this.graphInfo.value;
      if (info === null && this.#data.value !== null) this.#graph.value = null;
      if (info === null) return want(null);
      want({
        key: JSON.stringify([this.#data.value?.epoch, info.graph]),
        version: info.revision,
        fetch: (abort) => this.answers.graph(this.name, info.graph, abort),
        show: this.#showing(this.#graph),
      });
    });
    return () => (stop(), want(null));
  }

  #followStep(): () => void {
    const want = keepCurrent<StepStatistics>(this.#telling('The statistics of this step'));
    const stop = effect(() => {
      const step = this.step.value;
      if (step === null) return want(null);
      want({
        key: JSON.stringify([this.#data.value?.epoch, this.wishes.step.value === null ? 'latest' : step]),
        version: step,
        fetch: (abort) => this.answers.frame(this.name, step, abort),
        show: this.#showing(this.#statistics),
      });
    });
    return () => (stop(), want(null));
  }

  #showing<T>(shown: Signal<T | null>): (answer: T) => void {
    return (answer) => {
      this.#problem.value = null;
      shown.value = answer;
    };
  }

  #telling(what: string): (cause: unknown) => void {
    return (cause) => void (this.#problem.value = `${what} could not be fetched: ${messageOf(cause)} Trying again.`);
  }
}

/** The frame of the chosen step, or of the last one before it; the latest when none is chosen. */
function frameOnShow(data: ModelData | null, chosen: number | null): number | null {
  const steps = data?.steps ?? [];
  if (steps.length === 0) return null;
  return chosen === null ? steps.length - 1 : frameAtStep(steps, chosen);
}
