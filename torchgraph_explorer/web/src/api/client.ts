/** Who answers the viewer, decided once: the page that was exported with its data in it, else the server. */

import type {Answers} from './answers';
import {openPage} from './page';
import type {Page} from './page';
import {Precedence} from './precedence';
import {server} from './server';

/** The exported page that this is; null where a server is asked. */
export const page: Page | null = openPage();

export const answers: Answers = page?.answers ?? server;

/** What charts need comes first. */
export const precedence = new Precedence();

/** The answers for a model with charts. */
export const chartAnswers: Answers = {
  ...answers,
  updates: (...asked) => precedence.first(() => answers.updates(...asked)),
  history: (...asked) => precedence.first(() => answers.history(...asked)),
};
