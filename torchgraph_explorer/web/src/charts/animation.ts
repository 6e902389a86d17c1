/** Painting jobs, done together when the browser is about to repaint. */

/** Does some of its work; true when there is more to do, which is done before a later repaint. */
type Job = () => boolean | void;

const BUDGET_MS = 12; // of the 16 between two repaints; the rest is painted at the next one

const waiting = new Map<object, Job>();

/** Does `job` before the next repaint. A later job of the same owner takes its place. */
export function schedule(owner: object, job: Job): void {
  if (waiting.size === 0) requestAnimationFrame(work);
  waiting.set(owner, job);
}

/** Drops the job of an owner that has gone. */
export function unschedule(owner: object): void {
  waiting.delete(owner);
}

function work(start: number): void {
  try {
    for (const [owner, job] of waiting) {
      waiting.delete(owner);
      if (job() === true && !waiting.has(owner)) waiting.set(owner, job);
      if (performance.now() - start > BUDGET_MS) break;
    }
  } finally {
    if (waiting.size > 0) requestAnimationFrame(work); // also when a job has failed: the others are not to wait for ever
  }
}
