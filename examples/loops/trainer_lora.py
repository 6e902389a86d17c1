"""Hugging Face's Trainer with PEFT's LoRA, two batches to an update. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.trainer_lora`, then `torchgraph serve runs`; it needs `pip install transformers
accelerate peft`. The model is a small one that knows nothing yet, so nothing is downloaded.
"""

from __future__ import annotations

from typing import Any

import peft
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from torchgraph_explorer import watch


def counting(examples: int) -> list[dict[str, torch.Tensor]]:
    """Sequences that count up from a random number."""
    starts = torch.randint(0, 50, (examples,))
    return [{"input_ids": torch.arange(8) + start, "labels": torch.arange(8) + start} for start in starts]


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    size: Any = {"vocab_size": 64, "n_positions": 8, "n_embd": 32, "n_layer": 2, "n_head": 2}
    config = GPT2Config(**size, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    lora = peft.LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    model = peft.get_peft_model(GPT2LMHeadModel(config), lora)
    watch(model, log_freq=3, backend="record")  # <--
    arguments = TrainingArguments(
        output_dir="runs/trainer",
        max_steps=8,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=counting(64))
    trainer.train()
    return model, trainer.state.global_step


if __name__ == "__main__":
    main()
