/** The command that makes one HTML file of runs, for those whose browsers do not reach this server. */

/** For the runs of these names in the folder of runs, the one on show first. */
export function exportCommand(logdir: string, runs: readonly string[]): string {
  const paths = [...new Set(runs)].map((run) => (run === '.' ? logdir : `${logdir.replace(/\/$/, '')}/${run}`));
  return `torchgraph export ${paths.map(quoted).join(' ')} -o page.html`;
}

/** As a shell takes it as one word. */
function quoted(path: string): string {
  if (/^[\p{L}\p{N}_@%+=:,./-]+$/u.test(path)) return path;
  return path.includes('\\') ? `"${path}"` : `'${path.replaceAll("'", `'\\''`)}'`;
}
