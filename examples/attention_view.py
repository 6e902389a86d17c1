"""A view of one's own: colours a text by the attention of a transformer. See examples/attention_text.py.

torchgraph serve runs --view examples/attention_view.py:attention
"""

from __future__ import annotations

import html
import json

from torchgraph_explorer import ViewSelection

STYLE = """
<style>
  p { font: 15px/1.7 ui-monospace, monospace; white-space: pre-wrap; max-width: 75em; }
  span { cursor: default; border-radius: 2px; }
  span.is-here { outline: 2px solid; }
</style>
"""

SCRIPT = """
<script>
  const heads = JSON.parse(document.getElementById("weights").textContent);
  const texts = [...document.querySelectorAll("p")].map((one) => [...one.children]);
  function show(at) {
    texts.forEach((letters, head) => letters.forEach((letter, i) => {
      letter.style.background = `rgb(230 120 0 / ${i > at ? 0 : Math.sqrt(heads[head][at][i])})`;
      letter.classList.toggle("is-here", i === at);
    }));
  }
  texts.forEach((letters) => letters.forEach((letter, i) => letter.addEventListener("pointerenter", () => show(i))));
  show(START);
</script>
"""


def attention(selection: ViewSelection) -> str:
    """The text of the chosen sample, once for each head of the chosen block. Point at a letter to see its attention."""
    module = selection.module or ""
    name = f"{module}.weights" if module.endswith("attention") else "blocks.*.weights"
    codes, weights = selection.array("codes"), selection.array(name)
    if weights.ndim != 3:
        return "<p>Choose one sample.</p>"
    text = "".join(map(chr, codes.tolist()))
    start = selection.index[-1] if selection.index else len(text) - 1
    letters = "".join(f"<span>{html.escape(letter)}</span>" for letter in text)
    heads = "".join(f"<h3>head {head}</h3><p>{letters}</p>" for head in range(len(weights)))
    data = json.dumps(weights.round(3).tolist())
    title = f"<h2>{selection.tensor(name).series.module}, step {selection.step}</h2>"
    numbers = f'<script id="weights" type="application/json">{data}</script>'
    return STYLE + title + heads + numbers + SCRIPT.replace("START", str(start))
