"""Hugging Face's `Trainer` with `report_to="wandb"`. The lines marked with an arrow add this package.

Run it with `python examples/wandb_transformers.py`; it needs `pip install transformers accelerate wandb`. The model
is a small one that knows nothing yet, so nothing is downloaded.
"""

from __future__ import annotations

import sys

import torch
import wandb
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from torchgraph_explorer import watch  # <--


def examples(count: int) -> list[dict[str, object]]:
    """Sentences of random words; those with more small words than large ones have label 1."""
    words = torch.randint(1, 100, (count, 16))
    labels = ((words < 50).sum(dim=1) > 8).long()
    return [{"input_ids": sentence, "labels": label} for sentence, label in zip(words, labels, strict=True)]


def main(steps: int) -> None:
    """Train."""
    config = BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    model = BertForSequenceClassification(config)
    wandb.init(project="torchgraph-examples")  # <-- before the Trainer, which then logs to the same run
    watch(model, backend="wandb", log_freq=10)  # <--
    arguments = TrainingArguments(
        output_dir="runs/trainer", max_steps=steps, report_to="wandb", logging_steps=5, save_strategy="no", use_cpu=True
    )
    Trainer(model=model, args=arguments, train_dataset=examples(512)).train()
    wandb.finish()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
