/** Hands a file to the user, made in the page. */

import {page} from '../../api/client';

/** Where a host may forbid it without a word, as W&B does: what to do then, as a sentence; null elsewhere. */
export const downloadHint: string | null =
  page !== null && parent !== window ? 'Some hosts of this page, W&B among them, block downloads. Open the HTML file by itself then.' : null;

/** Saves `content` as a file of that name. */
export function download(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser may ask first where to put it
}

/** A file's name of these parts, which any system takes: `run-model-step 20.svg`. */
export function fileName(parts: readonly (string | null)[], ending: string): string {
  const safe = parts.flatMap((part) => part?.normalize('NFC').replace(/[^\p{L}\p{N}._ -]+/gu, '_').trim() || []);
  return `${safe.join('-').replace(/^\.+/, '').slice(0, 120) || 'torchgraph'}.${ending}`;
}
