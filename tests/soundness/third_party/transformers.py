"""Tiny models of transformers, with random weights."""

# ruff: noqa
import torch
from torch import nn
import transformers


def tokens(i, length=4):
    return (torch.arange(2 * length).reshape(2, length) * 7 + i) % 30


def args(i):
    return (), {"input_ids": tokens(i)}


small = dict(
    vocab_size=32,
    hidden_size=8,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=16,
)


# === bert
region = transformers.BertModel(transformers.BertConfig(**small))

# === bert_with_labels
region = transformers.BertForSequenceClassification(transformers.BertConfig(**small, num_labels=3))


def args(i):
    return (), {"input_ids": tokens(i), "labels": torch.tensor([i % 3, 0])}


# === gpt2
region = transformers.GPT2LMHeadModel(
    transformers.GPT2Config(vocab_size=32, n_embd=8, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=1)
)


def args(i):
    return (), {"input_ids": tokens(i), "labels": tokens(i)}


# === llama
region = transformers.LlamaForCausalLM(transformers.LlamaConfig(**small, num_key_value_heads=1))


def args(i):
    return (), {"input_ids": tokens(i), "use_cache": i % 3 == 2, "attention_mask": torch.ones(2, 4, dtype=torch.long)}


# === loss_of_a_loop
model = transformers.LlamaModel(transformers.LlamaConfig(**small))
losses = []


def region(ids):
    out = model(ids, output_hidden_states=True)
    losses.append(len(out.hidden_states))
    return {name: value for name, value in out.items() if name == "last_hidden_state"}, losses[-1]


def args(i):
    return (tokens(i),)


def change_configuration():
    model.config.use_cache = not model.config.use_cache


def change_length():
    losses.clear()


# === t5
region = transformers.T5Model(
    transformers.T5Config(vocab_size=32, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0)
)


def args(i):
    return (), {"input_ids": tokens(i), "decoder_input_ids": tokens(i, 3)}


# === vit
region = transformers.ViTModel(
    transformers.ViTConfig(
        hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4
    )
)


def args(i):
    return (torch.linspace(0, 1 + i, 2 * 3 * 64).reshape(2, 3, 8, 8),)


# === one_layer
layer = transformers.models.llama.modeling_llama.LlamaMLP(transformers.LlamaConfig(**small))
norm = transformers.models.llama.modeling_llama.LlamaRMSNorm(8)
region = nn.Sequential(norm, layer)


def args(i):
    return (torch.linspace(-1, 1 + i, 16).reshape(2, 8),)
