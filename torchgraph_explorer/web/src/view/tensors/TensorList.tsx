/** Every tensor that was kept, by module. */

import {useSignal} from '@preact/signals';
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import type {KeptTensors} from '../../api/tensors';
import {counted, formatBytes} from '../../numberText';
import * as choices from '../state/choices';
import * as shown from '../state/shown';
import {groupsOf, roleName} from '../../tensors/names';
import type {Group, Kept} from '../../tensors/names';
import {listedId} from './Selectors';
import * as store from './store';

/** What is typed, which the keys that lead from tensor to tensor heed. */
const words = {value: ''};

/** The tensors of the list in its order. */
function listed(): Kept[] {
  return groupsOf(store.tensors.value.values(), words.value).flatMap(({tensors}) => tensors);
}

export function TensorList(): JSX.Element {
  const typed = useSignal(words.value);
  words.value = typed.value;
  const groups = groupsOf(store.tensors.value.values(), typed.value);
  const current = store.current.value;
  const here = current && listedId(current);
  return (
    <nav class="tensor-list" aria-label="Kept tensors">
      <input type="search" placeholder="Find a tensor" aria-label="Find a tensor" value={typed.value} onInput={({currentTarget}) => (typed.value = currentTarget.value)} />
      <p class="dim tensor-list-facts">
        {store.isKnown.value ? factsText(store.kept.value) : 'Loading …'}
      </p>
      <div class="tensor-list-items">
        {groups.map((group) => (
          <ModuleGroup key={group.module} group={group} here={here} />
        ))}
        {groups.length === 0 && typed.value !== '' && <p class="dim pad">No kept tensor has this name.</p>}
      </div>
    </nav>
  );
}

function factsText({steps, bytes, left_out: left}: KeptTensors): string {
  const count = counted(steps.length, 'step');
  return `${count}, ${formatBytes(bytes)}${left > 0 ? `; ${left} earlier steps are not listed` : ''}`;
}

function ModuleGroup({group: {module, tensors}, here}: {group: Group; here: string | null}): JSX.Element {
  return (
    <section>
      <h3 title={module}>
        <bdi>{module === '' ? 'the model' : module}</bdi>
      </h3>
      <ul>
        {tensors.map((one) => (
          <Item key={one.id} kept={one} isHere={one.id === here} />
        ))}
      </ul>
    </section>
  );
}

function Item({kept, isHere}: {kept: Kept; isHere: boolean}): JSX.Element {
  const {info, variants} = kept;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isHere) button.current?.scrollIntoView({block: 'nearest'});
  }, [isHere]);
  const kind = info.named === 'target' || info.named === 'loss' ? info.named : info.role;
  const hasGradient = variants.some(({kind}) => kind !== 'value');
  return (
    <li>
      <button ref={button} type="button" aria-current={isHere ? 'true' : undefined} onClick={() => store.openListed(kept.id)}>
        <i class={`tensor-kind is-${kind}`} title={kind} />
        <span class="tensor-item-name">
          <bdi>{roleName(shown.graph.value, info)}</bdi>
        </span>
        <span class="dim">
          [{info.shape.join(', ')}]{hasGradient && <abbr title="with its gradient"> ∇</abbr>}
        </span>
      </button>
    </li>
  );
}

/** Leads to the tensor `by` places on in the list. */
export function openBeside(by: number): void {
  const current = store.current.value;
  const all = listed().map(({id}) => id);
  const next = store.beyond(all, current === null ? '' : listedId(current), by);
  if (next !== null) store.openListed(next);
  if (choices.view.value !== 'own') choices.view.value = 'tensors';
}
