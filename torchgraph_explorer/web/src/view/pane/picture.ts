/** The drawing of the open call as a picture of its own: all of it, with the colours that it has on the screen. */

import type {Layout} from '../../api/types';

const MARGIN = 16;
const PIXELS_PER_PX = 2;
/** Beyond these, browsers make no canvas. */
const LONGEST_SIDE = 8192;
const MOST_PIXELS = 2 ** 25;

const NAMESPACE = 'http://www.w3.org/2000/svg';

/** What style sheets say of an element, and how SVG has it as an attribute. */
const STYLES = [
  ...['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'stroke-opacity', 'fill-opacity', 'opacity'],
  ...['font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline', 'marker-end'],
] as const;
const KEPT = ['d', 'x', 'y', 'x1', 'y1', 'x2', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'width', 'height', 'points', 'transform', 'id', 'viewBox', 'refX', 'refY'];
const OF_DEFINITIONS = ['markerWidth', 'markerHeight', 'orient', 'markerUnits', 'patternUnits', 'patternTransform'];
/** What holds for an element that says nothing. */
const DEFAULTS: Partial<Record<string, string>> = {
  ...{stroke: 'none', 'stroke-dasharray': 'none', 'stroke-width': '1px', 'stroke-linecap': 'butt', 'stroke-linejoin': 'miter'},
  ...{'stroke-opacity': '1', 'fill-opacity': '1', opacity: '1', 'text-anchor': 'start', 'dominant-baseline': 'auto', 'marker-end': 'none'},
};

export interface Picture {
  svg: string;
  width: number;
  height: number;
}

/** The SVG of what is drawn in `canvas`, of the size of its layout. It names nothing outside of itself. */
export function pictureOf(canvas: SVGSVGElement, {width: drawn, height: tall}: Layout, title: string): Picture {
  const [width, height] = [Math.ceil(drawn) + 2 * MARGIN, Math.ceil(tall) + 2 * MARGIN];
  const picture = document.createElementNS(NAMESPACE, 'svg');
  const area = {viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, width, height};
  Object.entries(area).forEach(([name, value]) => picture.setAttribute(name, String(value)));
  const rgb = colours();
  const ground = element('rect', {x: -MARGIN, y: -MARGIN, width, height, fill: rgb(getComputedStyle(canvas).backgroundColor)});
  const named = document.createElementNS(NAMESPACE, 'title');
  named.textContent = title;
  picture.append(named, ground);
  for (const child of canvas.children) {
    const copy = copyOf(child, rgb);
    if (copy !== null && child.tagName === 'g') copy.removeAttribute('transform'); // where the user looks
    if (copy !== null) picture.append(copy);
  }
  return {svg: new XMLSerializer().serializeToString(picture), width, height};
}

/** The picture as pixels, two to one unless it is very large. */
export async function pngOf({svg, width, height}: Picture): Promise<Blob> {
  const scale = Math.min(PIXELS_PER_PX, LONGEST_SIDE / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob === null ? reject(new Error('The browser could not make the picture.')) : resolve(blob)), 'image/png');
  });
}

/** An element and what is in it, with its look as attributes; null when it is not shown. */
function copyOf(original: Element, rgb: (colour: string) => string): Element | null {
  const style = getComputedStyle(original);
  const isDefinition = original.closest('defs') !== null;
  if (style.display === 'none' && !isDefinition) return null;
  const copy = document.createElementNS(NAMESPACE, original.tagName);
  for (const name of isDefinition ? [...KEPT, ...OF_DEFINITIONS] : KEPT) {
    const value = original.getAttribute(name);
    if (value !== null) copy.setAttribute(name, value);
  }
  const isText = original.tagName === 'text';
  const isGroup = ['g', 'defs', 'marker', 'pattern'].includes(original.tagName);
  for (const name of isGroup ? ['opacity'] : STYLES) {
    const value = valueOf(style.getPropertyValue(name), rgb);
    const isForText = name.startsWith('font') || name === 'text-anchor' || name === 'dominant-baseline';
    if (value !== '' && value !== DEFAULTS[name] && (isText || !isForText)) copy.setAttribute(name, value);
  }
  if (isText) copy.textContent = original.textContent;
  else for (const child of original.children) {
    const inner = copyOf(child, rgb);
    if (inner !== null) copy.append(inner);
  }
  return copy;
}

function valueOf(value: string, rgb: (colour: string) => string): string {
  const reference = /url\(["']?[^"')]*#([^"')]+)["']?\)/.exec(value);
  if (reference !== null) return `url(#${reference[1]})`;
  return /^(?:rgb|color|oklab|oklch|lab|lch|hsl)/.test(value) ? rgb(value) : value;
}

/** Any colour of CSS as `#rrggbb`, or `rgba()` where it is seen through: other programs know no more. */
function colours(): (colour: string) => string {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [1, 1];
  const context = canvas.getContext('2d', {willReadFrequently: true})!;
  const known = new Map<string, string>();
  return (colour) => {
    const before = known.get(colour);
    if (before !== undefined) return before;
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0, alpha = 0] = context.getImageData(0, 0, 1, 1).data;
    const solid = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`;
    const found = alpha === 255 ? solid : alpha === 0 ? 'none' : `rgba(${red},${green},${blue},${(alpha / 255).toFixed(3)})`;
    known.set(colour, found);
    return found;
  };
}

function element(name: string, attributes: Record<string, string | number>): Element {
  const made = document.createElementNS(NAMESPACE, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, String(value)));
  return made;
}
