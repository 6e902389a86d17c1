import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vitest/config';

/** Where the `dev` server finds the API: a running `torchgraph serve`. */
const API = process.env.TORCHGRAPH_API ?? 'http://127.0.0.1:8080';

const TESTS = ['tests/**/*.test.ts', 'src/**/*.test.ts'];

/** Tests that put something in the place of what others use too: a module, the frames of the browser. Each is loaded for itself. */
const ALONE = ['failedOnce', 'leading', 'optimizerChoice', 'charts/animation', 'tensors/record', 'xray/store'].map((name) => `tests/${name}.test.ts`);

export default defineConfig({
  base: './',
  resolve: {alias: {'d3-transition': fileURLToPath(new URL('src/view/pane/stillTransition.ts', import.meta.url))}},
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  build: {
    outDir: 'dist',
    target: 'es2022',
    license: {fileName: 'licenses.md'}, // of the bundled libraries, which ask to be named wherever they are copied
    assetsInlineLimit: 0,
    modulePreload: {polyfill: false},
    rolldownOptions: {output: {codeSplitting: false}},
  },
  server: {host: '127.0.0.1', fs: {allow: ['..']}, proxy: {'/api': {target: API, changeOrigin: true}}},
  test: {
    environment: 'node',
    projects: [
      {extends: true, test: {name: 'together', include: TESTS, exclude: ALONE, isolate: false}},
      {extends: true, test: {name: 'alone', include: ALONE}},
    ],
  },
});
