/** Says so when a fault of the viewer, or a record that it did not expect, has stopped a part of the page. */

const ADVICE = 'A part of this page may be missing or old. Reload it; if that does not help, please report this.';

/** To be called first. It needs nothing of the rest of the page, which may be what has failed. */
export function watchForFailure(): void {
  addEventListener('error', ({error}) => tell(error));
  addEventListener('unhandledrejection', ({reason}) => tell(reason));
}

/** What is no error of ours is not told: browsers report layouts that settle late, and requests that were given up. */
function tell(cause: unknown): void {
  if (!(cause instanceof Error) || cause.name === 'AbortError' || document.querySelector('.failure')) return;
  const notice = document.createElement('div');
  notice.className = 'failure';
  notice.setAttribute('role', 'alert');
  const text = document.createElement('span');
  text.textContent = `The viewer has failed: ${cause.message.slice(0, 200)}. ${ADVICE}`;
  notice.append(text, button('Reload', () => location.reload()), button('Close', () => notice.remove()));
  document.body.append(notice);
}

function button(text: string, act: () => void): HTMLButtonElement {
  const made = document.createElement('button');
  made.type = 'button';
  made.className = 'button';
  made.textContent = text;
  made.addEventListener('click', act);
  return made;
}
