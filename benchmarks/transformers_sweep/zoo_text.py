"""Architectures that read text: encoders, decoders, encoder-decoders."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.transformers_sweep.architecture import (
    BATCH,
    LENGTH,
    Architecture,
    answered,
    classified,
    decoded,
    ids,
    labelled,
    padding,
    text,
    translated,
    unmasked,
)

A = Architecture


def _boxes(config: Any) -> dict[str, Any]:
    """Text with the place of each token on a page."""
    corners = torch.randint(0, 30, (BATCH, LENGTH, 2))
    return {**text(config), "bbox": torch.cat([corners, corners + torch.randint(1, 30, corners.shape)], -1)}


def _characters(config: Any) -> dict[str, Any]:
    return {"input_ids": torch.randint(5, 900, (BATCH, 64)), "attention_mask": padding(64), "labels": torch.tensor([0, 1])}


def _long(config: Any) -> dict[str, Any]:
    return {"input_ids": ids(config, 32), "attention_mask": padding(32), "labels": ids(config, 32)}


def _global(config: Any) -> dict[str, Any]:
    """Long text of which some tokens attend to everything."""
    everywhere = torch.zeros(BATCH, 32, dtype=torch.long)
    everywhere[:, 0] = 1
    return {**_long(config), "global_attention_mask": everywhere}


def _masked_decoder(config: Any) -> dict[str, Any]:
    return {"input_ids": ids(config, 32), "attention_mask": padding(32), "decoder_input_ids": ids(config, 8)}


def _entities(config: Any) -> dict[str, Any]:
    return {
        **text(config),
        "entity_ids": torch.randint(1, 9, (BATCH, 2)),
        "entity_attention_mask": torch.ones(BATCH, 2, dtype=torch.long),
        "entity_position_ids": torch.tensor([[[1, 2, -1], [3, -1, -1]]] * BATCH),
    }


def _paths(config: Any) -> dict[str, Any]:
    """Text of a marked-up page, with the path of each token's element."""
    return {
        **text(config),
        "xpath_tags_seq": torch.randint(0, 9, (BATCH, LENGTH, 4)),
        "xpath_subs_seq": torch.randint(0, 9, (BATCH, LENGTH, 4)),
    }


_XMOD = {"languages": ["en_XX", "de_DE"], "default_language": "en_XX"}

ENCODERS = [
    A("bert", "BertForMaskedLM", labelled),
    A("albert", "AlbertForMaskedLM", labelled, {"num_hidden_groups": 1}),
    A("big_bird", "BigBirdForMaskedLM", _long, {"attention_type": "original_full"}),
    A("camembert", "CamembertForSequenceClassification", classified),
    A(
        "canine",
        "CanineForSequenceClassification",
        _characters,
        {
            "num_hash_buckets": 64,
            "num_hash_functions": 2,
            "max_position_embeddings": 64,
            "local_transformer_stride": 8,
            "downsampling_rate": 4,
        },
    ),
    A("convbert", "ConvBertForMaskedLM", labelled, {"embedding_size": 32, "conv_kernel_size": 5, "head_ratio": 2}),
    A("data2vec-text", "Data2VecTextForMaskedLM", labelled),
    A("deberta", "DebertaForMaskedLM", labelled, {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    A(
        "deberta-v2",
        "DebertaV2ForSequenceClassification",
        classified,
        {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3},
    ),
    A("distilbert", "DistilBertForMaskedLM", labelled),
    A("electra", "ElectraForPreTraining", labelled),
    A("ernie", "ErnieForMaskedLM", labelled, {"use_task_id": True}),
    A("esm", "EsmForMaskedLM", labelled, {"mask_token_id": 4, "position_embedding_type": "rotary"}),
    A("eurobert", "EuroBertForMaskedLM", labelled),
    A("flaubert", "FlaubertWithLMHeadModel", labelled, {"emb_dim": 32, "n_langs": 1, "max_position_embeddings": 64}),
    A("fnet", "FNetForMaskedLM", unmasked, {"tpu_short_seq_length": LENGTH}),
    A("funnel", "FunnelForMaskedLM", labelled, {"block_sizes": [1, 1], "d_head": 8, "n_head": 4, "num_decoder_layers": 1}),
    A("ibert", "IBertForMaskedLM", labelled, {"quant_mode": True}),
    A("layoutlm", "LayoutLMForMaskedLM", _boxes, {"max_2d_position_embeddings": 64}),
    A("lilt", "LiltModel", _boxes, {"max_2d_position_embeddings": 64, "channel_shrink_ratio": 2, "hidden_size": 48}),
    A("longformer", "LongformerForMaskedLM", _global, {"attention_window": [4, 4]}),
    A("luke", "LukeModel", _entities, {"entity_vocab_size": 10, "entity_emb_size": 16}),
    A(
        "markuplm",
        "MarkupLMModel",
        _paths,
        {
            "max_xpath_tag_unit_embeddings": 12,
            "max_xpath_subs_unit_embeddings": 12,
            "tag_pad_id": 10,
            "subs_pad_id": 10,
            "xpath_unit_hidden_size": 8,
            "max_depth": 4,
        },
    ),
    A("megatron-bert", "MegatronBertForMaskedLM", labelled),
    A(
        "mobilebert",
        "MobileBertForMaskedLM",
        labelled,
        {"embedding_size": 16, "intra_bottleneck_size": 16, "hidden_size": 32, "num_feedforward_networks": 2},
    ),
    A("modernbert", "ModernBertForMaskedLM", labelled, {"local_attention": 8}),
    A("mpnet", "MPNetForMaskedLM", labelled),
    A("mra", "MraForMaskedLM", _long, {"approx_mode": "full", "block_per_row": 1}),
    A(
        "nystromformer",
        "NystromformerForMaskedLM",
        unmasked,
        {"num_landmarks": 4, "segment_means_seq_len": LENGTH, "conv_kernel_size": 5},
    ),
    A("rembert", "RemBertForMaskedLM", labelled, {"input_embedding_size": 16, "output_embedding_size": 16}),
    A("roberta", "RobertaForMaskedLM", labelled),
    A("roberta-prelayernorm", "RobertaPreLayerNormForMaskedLM", labelled),
    A(
        "roc_bert",
        "RoCBertForMaskedLM",
        labelled,
        {"pronunciation_vocab_size": 99, "shape_vocab_size": 99, "pronunciation_embed_dim": 16, "shape_embed_dim": 16},
    ),
    A("roformer", "RoFormerForMaskedLM", labelled),
    A("splinter", "SplinterForQuestionAnswering", answered, {"question_token_id": 50}),
    A(
        "squeezebert",
        "SqueezeBertForMaskedLM",
        labelled,
        {"embedding_size": 32, "q_groups": 2, "k_groups": 2, "v_groups": 2},
    ),
    A("tapas", "TapasModel", text, {"type_vocab_sizes": [3, 8, 8, 2, 8, 8, 4]}),
    A("xlm", "XLMWithLMHeadModel", labelled, {"emb_dim": 32, "n_langs": 2}),
    A("xlm-roberta", "XLMRobertaForMaskedLM", labelled),
    A("xmod", "XmodForMaskedLM", labelled, {**_XMOD, "adapter_reduction_factor": 2}),
    A("yoso", "YosoForMaskedLM", labelled),
]

_MAMBA = {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8}

DECODERS = [
    A("gpt2", "GPT2LMHeadModel", labelled),
    A(
        "bamba",
        "BambaForCausalLM",
        labelled,
        {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8, "attn_layer_indices": [1]},
    ),
    A("biogpt", "BioGptForCausalLM", labelled),
    A("bloom", "BloomForCausalLM", labelled),
    A("codegen", "CodeGenForCausalLM", labelled, {"rotary_dim": 4, "n_ctx": 64}),
    A("cohere", "CohereForCausalLM", labelled),
    A(
        "cpmant",
        "CpmAntForCausalLM",
        unmasked,
        {"dim_head": 8, "prompt_types": 4, "prompt_length": 4, "segment_types": 4, "position_bias_num_buckets": 8},
    ),
    A("ctrl", "CTRLLMHeadModel", labelled),
    A(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        labelled,
        {
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "first_k_dense_replace": 1,
            "num_key_value_heads": 4,
        },
    ),
    A("falcon", "FalconForCausalLM", labelled),
    A("falcon_mamba", "FalconMambaForCausalLM", labelled, {"state_size": 8, "time_step_rank": 4}),
    A("gemma2", "Gemma2ForCausalLM", labelled, {"sliding_window": 8}),
    A("glm4", "Glm4ForCausalLM", labelled),
    A("gpt_bigcode", "GPTBigCodeForCausalLM", labelled),
    A("gpt_neo", "GPTNeoForCausalLM", labelled, {"attention_types": [[["global", "local"], 1]], "window_size": 4}),
    A("gpt_neox", "GPTNeoXForCausalLM", labelled),
    A("gpt_oss", "GptOssForCausalLM", labelled, {"sliding_window": 8}),
    A("gptj", "GPTJForCausalLM", labelled, {"rotary_dim": 4}),
    A("granite", "GraniteForCausalLM", labelled),
    A(
        "jamba",
        "JambaForCausalLM",
        labelled,
        {
            "mamba_d_state": 8,
            "mamba_dt_rank": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "use_mamba_kernels": False,
        },
    ),
    A("llama", "LlamaForCausalLM", labelled),
    A("mamba", "MambaForCausalLM", unmasked, {"state_size": 8, "time_step_rank": 4}),
    A("mamba2", "Mamba2ForCausalLM", unmasked, {**_MAMBA}),
    A("mistral", "MistralForCausalLM", labelled, {"sliding_window": 8}),
    A("mixtral", "MixtralForCausalLM", labelled),
    A("mpt", "MptForCausalLM", labelled, {"max_seq_len": 64}),
    A("nemotron", "NemotronForCausalLM", labelled),
    A("olmo2", "Olmo2ForCausalLM", labelled),
    A("olmoe", "OlmoeForCausalLM", labelled),
    A("openai-gpt", "OpenAIGPTLMHeadModel", labelled),
    A("opt", "OPTForCausalLM", labelled, {"word_embed_proj_dim": 32}),
    A("persimmon", "PersimmonForCausalLM", labelled),
    A("phi", "PhiForCausalLM", labelled),
    A("phi3", "Phi3ForCausalLM", labelled, {"sliding_window": None}),
    A("qwen2_moe", "Qwen2MoeForCausalLM", labelled, {"shared_expert_intermediate_size": 32}),
    A("qwen3", "Qwen3ForCausalLM", labelled),
    A(
        "qwen3_next",
        "Qwen3NextForCausalLM",
        labelled,
        {
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "shared_expert_intermediate_size": 32,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    A(
        "recurrent_gemma",
        "RecurrentGemmaForCausalLM",
        labelled,
        {
            "lru_width": 32,
            "attention_window_size": 8,
            "num_hidden_layers": 3,
            "block_types": ["recurrent", "recurrent", "attention"],
        },
    ),
    A(
        "reformer",
        "ReformerModelWithLMHead",
        _long,
        {
            "attn_layers": ["local", "lsh"],
            "axial_pos_shape": [4, 8],
            "axial_pos_embds_dim": [16, 16],
            "is_decoder": True,
            "attention_head_size": 8,
            "feed_forward_size": 48,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
            "num_buckets": 4,
            "hash_seed": 0,
        },
    ),
    A("rwkv", "RwkvForCausalLM", unmasked, {"attention_hidden_size": 32, "context_length": 64}),
    A("smollm3", "SmolLM3ForCausalLM", labelled),
    A("stablelm", "StableLmForCausalLM", labelled),
    A("starcoder2", "Starcoder2ForCausalLM", labelled),
    A("xglm", "XGLMForCausalLM", labelled, {"attention_heads": 4}),
    A("xlnet", "XLNetLMHeadModel", labelled, {"d_head": 8}),
    A(
        "zamba",
        "ZambaForCausalLM",
        labelled,
        {
            "mamba_d_state": 8,
            "mamba_dt_rank": 4,
            "n_mamba_heads": 2,
            "attention_head_dim": 16,
            "num_key_value_heads": 4,
            "num_hidden_layers": 4,
            "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
            "attention_hidden_size": 64,
            "use_mamba_kernels": False,
        },
    ),
]

_START = {"decoder_start_token_id": 0}
_MARIAN = {"decoder_start_token_id": 1, "decoder_vocab_size": 99}

ENCODER_DECODERS = [
    A("t5", "T5ForConditionalGeneration", translated, _START),
    A("bart", "BartForConditionalGeneration", translated),
    A("bigbird_pegasus", "BigBirdPegasusForConditionalGeneration", _masked_decoder, {"attention_type": "original_full"}),
    A("blenderbot", "BlenderbotForConditionalGeneration", translated),
    A(
        "fsmt",
        "FSMTForConditionalGeneration",
        decoded,
        {"langs": ["en", "de"], "src_vocab_size": 99, "tgt_vocab_size": 99},
    ),
    A(
        "led",
        "LEDForConditionalGeneration",
        _masked_decoder,
        {"attention_window": [4, 4], "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
    ),
    A(
        "longt5",
        "LongT5ForConditionalGeneration",
        translated,
        {**_START, "local_radius": 4, "encoder_attention_type": "local"},
    ),
    A("m2m_100", "M2M100ForConditionalGeneration", translated),
    A("marian", "MarianMTModel", translated, _MARIAN),
    A("mbart", "MBartForConditionalGeneration", translated),
    A("mt5", "MT5ForConditionalGeneration", translated),
    A("mvp", "MvpForConditionalGeneration", translated),
    A("pegasus", "PegasusForConditionalGeneration", translated),
    A("pegasus_x", "PegasusXForConditionalGeneration", _masked_decoder, {"block_size": 4, "num_global_tokens": 2}),
    A("plbart", "PLBartForConditionalGeneration", translated),
    A("prophetnet", "ProphetNetForConditionalGeneration", decoded, {"num_buckets": 8, "relative_max_distance": 16}),
    A("switch_transformers", "SwitchTransformersForConditionalGeneration", translated, {**_START, "num_experts": 2}),
    A("umt5", "UMT5ForConditionalGeneration", translated),
]
