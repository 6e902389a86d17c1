/** What changed at the step on show, and what moves with a series or the loss: lists that lead to the strips. */

import {batch, useSignal} from '@preact/signals';
import type {ComponentChildren, JSX} from 'preact';
import {answers, page} from '../../api/client';
import type {SeriesName} from '../../api/types';
import type {Change, Changes, CoOccurrence, CoOccurrences, FindingRate, Limit, Named, Related, RelatedTo, Relation} from '../../api/xray';
import {findingKey, placeText, titleOf} from '../../findings/names';
import type {Model} from '../../model/model';
import {counted, fromPython, wholeNumber} from '../../numberText';
import {colourSince, sinceStep, stepMeasures} from '../comparison/steps';
import {NumberInput} from '../controls/NumberInput';
import {Select} from '../controls/Select';
import {found} from '../findings/found';
import {goToFinding} from '../findings/goToFinding';
import {goToPlace} from '../goToPlace';
import {keysOf} from '../pane/marks';
import {seek} from '../panels/sought';
import {curveName} from '../state/axis';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {useAnswer} from '../useAnswer';
import {isLasting, target} from './face';
import type {Lasting} from './face';
import {keepXray} from './shownXray';

const MEASURES: Record<string, string> = {
  size: 'root mean square',
  std: 'std',
  largest: 'largest magnitude',
  mean: 'mean / RMS',
  zeros: 'zeros',
  nonfinite: 'NaN or infinite',
  distribution: 'distance of the histogram',
  value: 'value',
};
const SIDES = [
  {value: 'above', label: 'above'},
  {value: 'below', label: 'below'},
];
const LIMITED = ['size', 'std', 'largest', 'mean', 'zeros', 'nonfinite'].map((value) => ({value, label: MEASURES[value] ?? value}));
const KINDS: Record<string, string> = {value: '', grad_norm: 'gradient norms', grad: 'gradient', optimizer_grad: 'gradient at the update', update: 'update', update_ratio: 'update ratio', time: 'time of forward', memory: 'memory of outputs'};

export function ChangesList({model}: {model: Model}): JSX.Element {
  const scalar = curveName.value;
  const canAsk = page === null && model.scalars.data.value?.scalars.some(({name, label}) => name === scalar && label === undefined);
  return (
    <div class="xray-changes">
      {target.value === null ? (
        <Changed model={model} onRelate={(series) => (target.value = series)}>
          {scalar !== null && canAsk && (
            <button type="button" class="button" onClick={() => (target.value = {scalar})}>
              What moved with {scalar}, or before it?
            </button>
          )}
        </Changed>
      ) : isLasting(target.value) ? (
        <Lasted model={model} lasting={target.value} />
      ) : (
        <Moved model={model} target={target.value} />
      )}
    </div>
  );
}

function Changed({model, onRelate, children}: {model: Model; onRelate: (series: SeriesName) => void; children: ComponentChildren}): JSX.Element {
  const [step, since] = [shown.step.value, choices.since.value];
  const {answer, problem} = useAnswerOn<Changes>(model, step === null ? null : [step, since], (abort) => answers.changes(model.name, step!, since, abort));
  return (
    <>
      <div class="xray-changes-head">
        {children}
        <Against />
        {answer !== null && (
          <p>
            {`Step ${wholeNumber(answer.step)} compared with the recorded steps up to ${wholeNumber(answer.since)}. `}
            {answer.usual === null ? 'There are too few earlier steps to tell what is usual.' : `At an ordinary step, the highest score among all ${wholeNumber(answer.count)} series is about ${scoreText(answer.usual)}; rows with a lower score are paler.`}
          </p>
        )}
        {problem !== null && <p role="status">{problem}</p>}
        {answer === null && problem === null && <p class="dim">Comparing …</p>}
      </div>
      <ol aria-label="What changed at this step">
        {answer?.ranked.map((one) => (
          <Item key={JSON.stringify(one.series)} named={one} step={answer.step} isPale={answer.usual !== null && one.score <= answer.usual} value={scoreText(one.score)} facts={changeText(one)}>
            <button type="button" class="xray-text-button" aria-label={`What moves with ${seriesText(one.series)}?`} title="What moves with it, or before it?" onClick={() => onRelate(one.series)}>
              ↔
            </button>
          </Item>
        ))}
      </ol>
    </>
  );
}

/** Which earlier step the one on show is compared with, and the way to see that in the graph. */
function Against(): JSX.Element | null {
  const [steps, since, step] = [shown.data.value?.steps ?? [], sinceStep.value, shown.step.value];
  if (page !== null || since === null || steps.length < 2) return null;
  const isColoured = stepMeasures.value.some(({name}) => name === choices.colourBy.value);
  return (
    <div class="xray-against">
      <label class="select" title="Empty: the recorded step before">
        <span class="select-label">against step</span>
        <NumberInput label="Compare with step" min={steps[0]!} max={steps.at(-1)} value={since} onChoose={(chosen) => (choices.since.value = Number.isNaN(chosen) ? null : chosen)} />
      </label>
      <button type="button" class="button" aria-pressed={isColoured} disabled={since === step} onClick={() => (isColoured ? (choices.colourBy.value = 'class') : colourSince(since))}>
        Colour the graph by it
      </button>
    </div>
  );
}

function Moved({model, target: to}: {model: Model; target: RelatedTo}): JSX.Element {
  const {answer, problem} = useAnswerOn<Related>(model, to, (abort) => answers.related(model.name, to, abort));
  const name = 'scalar' in to ? to.scalar : seriesText(to);
  return (
    <>
      <div class="xray-changes-head">
        <Back />
        <h4>{`What moves with ${name}, or before it`}</h4>
        {answer !== null && (
          <p>
            {`Rank correlation of the changes over ${wholeNumber(answer.steps)} steps. ${chanceText('correlation', answer, answer.chance.toFixed(2))}`}
          </p>
        )}
        <Where of={to} name={name} />
        {problem !== null && <p role="status">{problem}</p>}
        {answer === null && problem === null && <p class="dim">Comparing …</p>}
      </div>
      <ol aria-label={`What moves with ${name}`}>
        {answer?.ranked.map((one) => (
          <Item key={keyOf(one)} named={one} step={shown.step.value ?? 0} isPale={!one.is_beyond_chance} value={signed(one.correlation)} facts={aheadText(one)} />
        ))}
      </ol>
    </>
  );
}

/** Asks about the steps at which a scalar or a series is above or below a limit. */
function Where({of, name}: {of: RelatedTo; name: string}): JSX.Element {
  const [side, value, measure] = [useSignal<Limit['side']>('above'), useSignal<number>(NaN), useSignal('size')];
  const isSeries = !('scalar' in of);
  const ask = (event: Event): void => {
    event.preventDefault();
    if (Number.isNaN(value.value)) return;
    const what = isSeries ? `${MEASURES[measure.value]} of ${name}` : name;
    target.value = {name: `${what} ${side.value} ${value.value}`, steps: {of, side: side.value, value: value.value, measure: measure.value}};
  };
  return (
    <form class="xray-against" onSubmit={ask}>
      <span>{isSeries ? 'Steps at which' : `Steps at which ${name} is`}</span>
      {isSeries && <Select label="Measure" isBare value={measure.value} options={LIMITED} onChoose={(chosen) => (measure.value = chosen)} />}
      {isSeries && <span>{`of ${name} is`}</span>}
      <Select label="Side of the limit" isBare value={side.value} options={SIDES} onChoose={(chosen) => (side.value = chosen === 'below' ? 'below' : 'above')} />
      <span class="select">
        <input type="number" step="any" required aria-label={`Limit of ${name}`} onInput={(event) => (value.value = event.currentTarget.valueAsNumber)} />
      </span>
      <button class="button">Show what is unusual</button>
    </form>
  );
}

/** What is unusual while a finding lasts, or where a limit is passed. */
function Lasted({model, lasting: {name, steps, finding}}: {model: Model; lasting: Lasting}): JSX.Element {
  const {answer, problem} = useAnswerOn<CoOccurrences>(model, steps, (abort) => answers.cooccurring(model.name, steps, abort));
  const first = 'of' in steps ? (shown.step.value ?? 0) : steps[0];
  const others = answer?.findings.filter((one) => one.share > 0 && !(findingKey(one) === finding && one.step === first)) ?? [];
  return (
    <>
      <div class="xray-changes-head">
        <Back />
        <h4>{`What is unusual during “${name}”, or was before it`}</h4>
        {answer !== null && (
          <p>
            {`Its ${answer.steps === 1 ? 'recorded step' : `${wholeNumber(answer.steps)} recorded steps`} compared with the ${wholeNumber(answer.others)} others. The score counts robust standard deviations. ${chanceText('score', answer, scoreText(answer.chance))}`}
          </p>
        )}
        {problem !== null && <p role="status">{problem}</p>}
        {answer === null && problem === null && <p class="dim">Comparing …</p>}
      </div>
      {others.length > 0 && (
        <ol aria-label={`Findings during ${name}`}>
          {others.map((one) => (
            <Rate key={`${one.kind} ${one.module} ${one.call} ${one.path} ${one.step}`} rate={one} />
          ))}
        </ol>
      )}
      <ol aria-label={`What is unusual during ${name}`}>
        {answer?.ranked.map((one) => (
          <Item key={keyOf(one)} named={one} step={Math.max(0, first - one.ahead)} isPale={!one.is_beyond_chance} value={signedScore(one.score)} facts={lastingText(one, answer.steps)} />
        ))}
      </ol>
    </>
  );
}

/** How often another finding is there at the same steps. */
function Rate({rate}: {rate: FindingRate}): JSX.Element {
  const className = shown.data.value?.session?.class_name ?? '';
  const finding = found.value?.findings.find((one) => findingKey(one) === findingKey(rate) && one.step === rate.step);
  return (
    <li class={rate.is_beyond_chance ? undefined : 'is-pale'}>
      <button type="button" class="xray-change" disabled={finding === undefined} onClick={() => finding !== undefined && (keepXray(), goToFinding(finding))} title="Show the finding">
        <b>{percent(rate.share)}</b>
        <span>
          <bdi>{`${titleOf(rate.kind)}, ${placeText(rate, className)}`}</bdi>
          <small>{`is there at ${percent(rate.share)} of its steps, ${percent(rate.elsewhere)} of others; chance gives up to ${percent(rate.chance)}`}</small>
        </span>
      </button>
    </li>
  );
}

function Back(): JSX.Element {
  return (
    <button type="button" class="button" onClick={() => (target.value = null)}>
      Back to what changed
    </button>
  );
}

/** What chance gives among so many, and what exceeds that. */
function chanceText(what: string, {count, beyond_chance: beyond}: Pick<Related, 'count' | 'beyond_chance'>, limit: string): string {
  const which = `the highest ${what} among ${wholeNumber(count)} series and scalars`;
  return `By chance alone, ${which} stays below ${limit} in 19 of 20 cases; ${wholeNumber(beyond)} ${beyond === 1 ? 'is' : 'are'} above that, and the others are paler.`;
}

function keyOf({series, scalar}: Named): string {
  return JSON.stringify(series ?? scalar);
}

interface ItemProps {
  named: Named;
  step: number;
  isPale: boolean;
  value: string;
  facts: string;
  children?: ComponentChildren;
}

function Item({named, step, isPale, value, facts, children}: ItemProps): JSX.Element {
  return (
    <li class={isPale ? 'is-pale' : undefined}>
      <button type="button" class="xray-change" onClick={() => goToNamed(named, step)} title={named.series ? 'Show its strips' : 'Show its curve'}>
        <b>{value}</b>
        <span>
          <bdi>{named.series ? seriesText(named.series) : named.scalar}</bdi>
          <small>{facts}</small>
        </span>
      </button>
      {children}
    </li>
  );
}

function goToNamed({series, scalar}: Named, step: number): void {
  if (series) {
    keepXray();
    seek(series);
    return goToPlace(step, keysOf(series));
  }
  batch(() => ((choices.curve.value = scalar ?? null), (choices.step.value = step)));
}

function seriesText({module, call, path, kind}: SeriesName): string {
  const name = module || (shown.data.value?.session?.class_name ?? 'model');
  const which = call === null || call === 0 ? '' : ` (call ${call + 1})`;
  return [`${name}${which}`, path, KINDS[kind] ?? kind].filter(Boolean).join(', ');
}

function changeText({measure, before, now}: Change): string {
  return `${MEASURES[measure] ?? measure}: ${fromPython(before)} → ${fromPython(now)}`;
}

/** `smaller root mean square at 87 % of its steps, 5 % of others; already for 3 steps before`. */
function lastingText({measure, score, share, elsewhere, ahead}: CoOccurrence, steps: number): string {
  const what = `${score < 0 ? 'lower' : 'higher'} ${MEASURES[measure] ?? measure}`;
  const often = steps === 1 ? (share > 0 ? 'at this step' : 'slightly, at this step') : `at ${percent(share)} of its steps`;
  const before = ahead === 0 ? '' : `; already for ${counted(ahead, 'step')} before`;
  return `${what} ${often}, ${percent(elsewhere)} of others${before}`;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function signedScore(score: number): string {
  return `${score < 0 ? '−' : '+'}${scoreText(Math.abs(score))}`;
}

function aheadText({ahead}: Relation): string {
  return ahead === 0 ? 'at the same step' : `${counted(ahead, 'step')} before`;
}

function scoreText(score: number): string {
  return score >= 1000 ? '> 1000' : score.toPrecision(2).replace(/e\+?(\d+)/, (_, power: string) => '0'.repeat(Number(power)));
}

function signed(value: number): string {
  return value.toFixed(2).replace('-', '−');
}

/** The answer about a model, and none while that is awaited; null asks for nothing. */
function useAnswerOn<T>(model: Model, asked: unknown, ask: (abort: AbortSignal) => Promise<T>): {answer: T | null; problem: string | null} {
  const key = asked === null ? null : JSON.stringify([model.name, shown.data.value?.epoch, asked]);
  const {value, problem, isCurrent} = useAnswer(key, ask);
  return isCurrent ? {answer: value, problem} : {answer: null, problem: null};
}
