/** Which requests wait for others: of compared runs, charts come first, and graphs and differences after them. */

/** So long after a request that comes first, the others begin: a chart asks only when it has been made. */
const REST_MS = 250;
/** The others wait no longer than this, however long the charts of a long run take. */
const LONGEST_MS = 3000;

export class Precedence {
  #underWay = 0;
  #ended = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #waiting = new Set<() => void>();

  /** Makes a request at once. */
  async first<T>(request: () => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await request();
    } finally {
      this.#underWay--;
      this.#ended = performance.now();
      this.#releaseAfterRest();
    }
  }

  /** Makes a request when those that come first have been answered. */
  async later<T>(request: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      const longest = setTimeout(() => release(), LONGEST_MS);
      const release = (): void => {
        clearTimeout(longest);
        this.#waiting.delete(release);
        resolve();
      };
      this.#waiting.add(release);
      this.#releaseAfterRest();
    });
    return request();
  }

  #releaseAfterRest(): void {
    clearTimeout(this.#timer);
    if (this.#underWay > 0 || this.#waiting.size === 0) return;
    const left = this.#ended + REST_MS - performance.now();
    if (left > 0) this.#timer = setTimeout(() => this.#releaseAfterRest(), left);
    else this.#waiting.forEach((release) => release());
  }
}
