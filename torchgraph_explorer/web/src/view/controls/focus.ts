/** Gives the focus back when a dialog closes: to a control, or to the graph, which is no HTML element. */
export function giveFocus(element: Element | null): void {
  if (element instanceof HTMLElement || element instanceof SVGElement) element.focus();
}
