/** What all drawing is done on. */
export type Context = CanvasRenderingContext2D;
