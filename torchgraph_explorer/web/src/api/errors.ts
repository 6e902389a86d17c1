/** What can go wrong with a question, as sentences. */

/** The server answered that it cannot; the message is its own sentence. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** What is said where no answer comes. */
export const SILENT = 'The server does not answer.';

/** No answer came: the server is gone, or the network. */
export class UnreachableError extends Error {}

/** So long after a question has failed, it is asked again. */
export const RETRY_MS = 2000;

export function isAbort(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'AbortError';
}

/** The same question may be answered later: the server or what is before it has failed, and not what was asked. */
export function mayPass(cause: unknown): boolean {
  return cause instanceof UnreachableError || (cause instanceof ApiError && cause.status >= 500);
}

/** The sentence to show for something thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
