/* Starts the viewer of an exported page: reads back what page/text.py wrote. Nothing is fetched. */
'use strict';
{
  const ALPHABET = [...Array(94).keys()].map((i) => i + 0x21).filter((letter) => !'"&<'.includes(String.fromCharCode(letter)));
  const VALUES = new Uint8Array(128);
  ALPHABET.forEach((letter, value) => (VALUES[letter] = value));

  /** The bytes that the element's text stands for: 13 bits in two letters, compressed. */
  const bytesIn = (id) => {
    const text = document.getElementById(id).textContent;
    const bytes = new Uint8Array(Math.floor((text.length * 13) / 16));
    let bits = 0;
    let held = 0;
    let at = 0;
    for (let i = 0; i < text.length; i += 2) {
      bits = ((bits << 13) | (VALUES[text.charCodeAt(i)] * 91 + VALUES[text.charCodeAt(i + 1)])) & 0x1fffff;
      for (held += 13; held >= 8; held -= 8) bytes[at++] = (bits >> (held - 8)) & 0xff;
    }
    return inflated(bytes);
  };

  /** The stream's length comes first: the bits that fill the last pair may look like a byte. */
  const inflated = async (bytes) => {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const stream = new Blob([bytes.subarray(4, 4 + length)]).stream();
    return new Response(stream.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
  };

  const add = (kind, text) => {
    const element = document.createElement(kind);
    element.textContent = text;
    if (kind === 'script') element.type = 'module';
    document.head.append(element);
  };

  const start = async () => {
    const [style, viewer, data] = await Promise.all(['style', 'viewer', 'data'].map((part) => bytesIn(`torchgraph-${part}`)));
    globalThis.torchgraphPage = data;
    add('style', new TextDecoder().decode(style));
    add('script', new TextDecoder().decode(viewer));
  };

  start().catch((cause) => {
    document.getElementById('app').textContent = `This page cannot be opened here: ${cause.message} It needs a browser of 2024 or later.`;
  });
}
