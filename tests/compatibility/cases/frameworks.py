"""Training loops and models of other libraries, from tiny configurations. Nothing is downloaded."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, Training, loss_of, sgd

case = Table("frameworks")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


@case("a Lightning module and Trainer, which sanity-checks and clips", slow=True, needs=("lightning",), steps=1)
def _() -> Any:
    import lightning

    class Lit(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Linear(6, 2))
            self.losses: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

        def training_step(self, batch: Tensor, _number: int) -> Tensor:
            loss = self(batch[0]).square().mean()
            self.losses.append(loss.detach())
            return loss

        def validation_step(self, batch: Tensor, _number: int) -> None:
            self(batch[0])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    model = Lit()

    def step(_number: int) -> object:
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 6)), batch_size=4)
        quiet: Any = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", gradient_clip_val=0.5, enable_checkpointing=False, **quiet
        )
        trainer.fit(model, data, data)
        random.seed(7)  # Lightning draws from it in a way that is not the same twice
        return list(model.losses)

    return Training(model, step)


@case("an accelerate loop with accumulation", slow=True, needs=("accelerate",))
def _() -> Any:
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    inner = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    plain = torch.optim.SGD(inner.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = accelerator.prepare(inner, plain)

    def step(_number: int) -> object:
        with accelerator.accumulate(model):
            loss = model(torch.randn(4, 6)).square().mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return Training(model, step, [plain])


@case("a Hugging Face Trainer", slow=True, needs=("transformers", "accelerate"), steps=1)
def _() -> Any:
    import tempfile

    import transformers

    model = _hugging("BertForSequenceClassification", "BertConfig", vocab_size=20, max_position_embeddings=16, **SMALL)
    folder = tempfile.TemporaryDirectory()

    def step(_number: int) -> object:
        rows = [{"input_ids": torch.randint(0, 20, (5,)), "labels": torch.tensor(i % 2)} for i in range(8)]
        arguments = transformers.TrainingArguments(
            output_dir=folder.name, max_steps=3, per_device_train_batch_size=2, use_cpu=True, report_to=[],
            disable_tqdm=True, save_strategy="no", logging_strategy="no",
        )  # fmt: skip
        transformers.Trainer(model=model, args=arguments, train_dataset=rows).train()
        return None

    return Training(model, step, close=folder.cleanup)


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
TOKENS = {"vocab_size": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _hugging(model: str, config: str, **options: Any) -> nn.Module:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**options))
    assert isinstance(made, nn.Module)
    return made.train()


def _tokens(name: str = "input_ids", length: int = 5) -> dict[str, Tensor]:
    return {name: torch.randint(3, 20, (2, length))}


def _labelled() -> dict[str, Tensor]:
    tokens = torch.randint(3, 20, (2, 5))
    return {"input_ids": tokens, "labels": tokens}


def _from_hugging(build: Callable[[], nn.Module], arguments: Callable[[], Mapping[str, Any]]) -> Training:
    model = build()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        output = model(**arguments())
        loss = output["loss"] if "loss" in output and output["loss"] is not None else loss_of(dict(output))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Mapping[str, Any]]]] = {
    "an encoder, BERT": (
        lambda: _hugging("BertForMaskedLM", "BertConfig", vocab_size=20, max_position_embeddings=16, **SMALL),
        _labelled,
    ),
    "a decoder with a cache, GPT-2": (
        lambda: _hugging("GPT2LMHeadModel", "GPT2Config", n_embd=16, n_layer=2, n_head=2, n_positions=16, **TOKENS),
        _labelled,
    ),
    "a decoder with grouped queries, Llama": (
        lambda: _hugging("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=1, **TOKENS, **SMALL),
        _labelled,
    ),
    "an encoder and decoder, T5": (
        lambda: _hugging("T5ForConditionalGeneration", "T5Config", d_model=16, d_kv=8, d_ff=16, num_layers=1,
                         num_heads=2, decoder_start_token_id=0, vocab_size=20),
        _labelled,
    ),
    "an encoder and decoder, BART": (
        lambda: _hugging("BartForConditionalGeneration", "BartConfig", d_model=16, encoder_layers=1, decoder_layers=1,
                         encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
                         max_position_embeddings=16, decoder_start_token_id=2, forced_eos_token_id=2, **TOKENS),
        _labelled,
    ),
    "a mixture of experts, Mixtral": (
        lambda: _hugging("MixtralForCausalLM", "MixtralConfig", num_key_value_heads=1, num_local_experts=4,
                         output_router_logits=True, **TOKENS, **SMALL),
        _labelled,
    ),
    "a state space, Mamba": (
        lambda: _hugging("MambaForCausalLM", "MambaConfig", hidden_size=16, num_hidden_layers=2, state_size=4,
                         use_mambapy=False, **TOKENS),
        _labelled,
    ),
    "vision, ViT": (
        lambda: _hugging("ViTForImageClassification", "ViTConfig", image_size=8, patch_size=4, **SMALL),
        lambda: {"pixel_values": torch.randn(2, 3, 8, 8), "labels": torch.tensor([0, 1])},
    ),
    "vision by convolution, ResNet": (
        lambda: _hugging("ResNetForImageClassification", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16],
                         depths=[1, 1]),
        lambda: {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])},
    ),
    "vision with shifted windows, Swin": (
        lambda: _hugging("SwinForImageClassification", "SwinConfig", image_size=16, patch_size=2, embed_dim=8,
                         depths=[1, 1], num_heads=[1, 2], window_size=4),
        lambda: {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([0, 1])},
    ),
    "audio, wav2vec 2": (
        lambda: _hugging("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", conv_dim=(8, 8), conv_stride=(4, 4),
                         conv_kernel=(8, 8), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
                         num_conv_pos_embedding_groups=2, mask_time_prob=0.0, **SMALL),
        lambda: {"input_values": torch.randn(2, 400), "labels": torch.tensor([0, 1])},
    ),
    "speech to text, Whisper": (
        lambda: _hugging("WhisperForConditionalGeneration", "WhisperConfig", d_model=16, encoder_layers=1,
                         decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
                         decoder_ffn_dim=16, num_mel_bins=8, max_source_positions=10, max_target_positions=16,
                         decoder_start_token_id=1, **TOKENS),
        lambda: {"input_features": torch.randn(2, 8, 20), "labels": torch.randint(3, 20, (2, 5))},
    ),
    "two towers, CLIP": (
        lambda: _hugging("CLIPModel", "CLIPConfig", projection_dim=8,
                         text_config={**TOKENS, **SMALL, "max_position_embeddings": 16},
                         vision_config={"image_size": 8, "patch_size": 4, **SMALL}),
        lambda: {**_tokens(), "pixel_values": torch.randn(2, 3, 8, 8), "return_loss": True},
    ),
}  # fmt: skip

for _name, _model in MODELS.items():
    case(f"transformers: {_name}", slow=True, needs=("transformers",), steps=3)(
        lambda parts=_model: _from_hugging(*parts)  # type: ignore[misc]
    )


@case("transformers: gradient checkpointing within", slow=True, needs=("transformers",), steps=3)
def _() -> Any:
    def build() -> nn.Module:
        model: Any = MODELS["a decoder with grouped queries, Llama"][0]()
        model.gradient_checkpointing_enable()
        return model

    return _from_hugging(build, _labelled)


@case("diffusers: a UNet with cross-attention", slow=True, needs=("diffusers",), steps=2)
def _() -> Any:
    import diffusers

    made: Any = diffusers.UNet2DConditionModel
    model = made(
        sample_size=8, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, cross_attention_dim=8,
        attention_head_dim=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        out = model(torch.randn(2, 4, 8, 8), torch.tensor([3, 7]), encoder_hidden_states=torch.randn(2, 5, 8))
        loss = out.sample.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])
