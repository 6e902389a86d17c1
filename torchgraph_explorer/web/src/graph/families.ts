/** Families of module classes, by which nodes are coloured. */

export const FAMILIES = [
  'convolution',
  'linear',
  'normalisation',
  'activation',
  'pooling',
  'attention',
  'recurrent',
  'embedding',
  'regularisation',
  'loss',
  'container',
  'other',
] as const;
export type Family = (typeof FAMILIES)[number];

/** The first rule that a class name matches gives its family. */
const RULES: readonly (readonly [RegExp, Family])[] = [
  [/loss$|criterion$/i, 'loss'],
  [/attention|attn/i, 'attention'],
  [/dropout|droppath|stochasticdepth/i, 'regularisation'],
  [/embedding|positional/i, 'embedding'],
  [/norm(\d+d?)?$|norm[^a-z]|^(lazy)?(batch|layer|group|instance|rms)norm|localresponse/i, 'normalisation'],
  [/pool/i, 'pooling'],
  [/^(lstm|gru|rnn)|(lstm|gru|rnn)(cell)?$/i, 'recurrent'],
  [/relu|elu$|gelu|silu|swish|mish|sigmoid|tanh|soft(max|min|plus|sign|shrink)|hard(tanh|swish|shrink)|threshold|^glu$|activation/i, 'activation'],
  [/conv|unfold|^fold$|pixelshuffle|upsample/i, 'convolution'],
  [/linear|dense|^mlp$|projection$/i, 'linear'],
  [/^sequential$|list$|dict$/i, 'container'],
];

/** The family of a class; one of its own making that has an inside is a container. */
export function familyOf(className: string, hasInside: boolean): Family {
  const family = RULES.find(([pattern]) => pattern.test(className))?.[1];
  if (hasInside && (family === undefined || family === 'convolution' || family === 'linear')) return 'container';
  return family ?? 'other';
}
