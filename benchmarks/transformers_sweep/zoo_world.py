"""Architectures that read images, video, sound, several of these with text, and time series."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.transformers_sweep.architecture import (
    BATCH,
    SIDE,
    Architecture,
    ids,
    image,
    image64,
    image64_label,
    image_label,
    image_text,
    pixels,
    spectrogram,
    text,
    video,
    waveform,
)

A = Architecture
Call = dict[str, Any]

_RESNET = {
    "model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1],
    "out_features": ["stage2", "stage3", "stage4"],
}  # fmt: skip
_PYRAMID = {"num_channels": 3, "depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32]}
_SWIN = {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 4], "window_size": 2, "patch_size": 4, "image_size": SIDE}
_DETR = {"num_queries": 5, "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
_DEFORMABLE = {**_DETR, "encoder_n_points": 2, "decoder_n_points": 2}


def _detection(config: Any) -> Call:
    return {"pixel_values": pixels(side=64), "pixel_mask": torch.ones(BATCH, 64, 64, dtype=torch.long)}


def _segmented(config: Any) -> Call:
    return {"pixel_values": pixels(side=64), "labels": torch.randint(0, 2, (BATCH, 64, 64))}


def _bytes(config: Any) -> Call:
    """For the Perceiver: text as bytes."""
    return {"inputs": torch.randint(6, 200, (BATCH, 32)), "attention_mask": torch.ones(BATCH, 32, dtype=torch.long)}


VISION = [
    A("beit", "BeitForImageClassification", image_label, {"use_relative_position_bias": True}),
    A("bit", "BitForImageClassification", image64_label, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "embedding_size": 8, "num_groups": 2}),
    A("conditional_detr", "ConditionalDetrForObjectDetection", _detection, {**_DETR, "backbone_config": _RESNET}),
    A("convnext", "ConvNextForImageClassification", image64_label, {**_PYRAMID}),
    A("convnextv2", "ConvNextV2ForImageClassification", image64_label, {**_PYRAMID}),
    A("cvt", "CvtForImageClassification", image64_label, {
        "embed_dim": [8, 16, 24], "num_heads": [1, 2, 2], "depth": [1, 2, 3]}),
    A("data2vec-vision", "Data2VecVisionForImageClassification", image_label, {"use_relative_position_bias": True}),
    A("deformable_detr", "DeformableDetrForObjectDetection", _detection, {**_DEFORMABLE, "backbone_config": _RESNET}),
    A("deit", "DeiTForImageClassification", image_label),
    A("detr", "DetrForObjectDetection", _detection, {**_DETR, "backbone_config": _RESNET}),
    A("dinov2", "Dinov2ForImageClassification", image_label),
    A("dpt", "DPTForDepthEstimation", image, {
        "neck_hidden_sizes": [8, 16, 24, 32], "fusion_hidden_size": 8, "is_hybrid": False,
        "backbone_out_indices": [0, 1, 2, 3], "num_hidden_layers": 4}),
    A("efficientnet", "EfficientNetForImageClassification", image64_label, {
        "kernel_sizes": [3, 3], "in_channels": [32, 8], "out_channels": [8, 16], "depthwise_padding": [], "strides": [1, 2],
        "num_block_repeats": [1, 1], "expand_ratios": [1, 2], "hidden_dim": 1280, "width_coefficient": 1.0,
        "depth_coefficient": 1.0, "dropout_rate": 0.1}),
    A("focalnet", "FocalNetForImageClassification", image64_label, {
        "embed_dim": 8, "depths": [1, 1], "focal_levels": [2, 2], "focal_windows": [3, 3], "patch_size": 4,
        "image_size": 64}),
    A("glpn", "GLPNForDepthEstimation", image64, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
        "decoder_hidden_size": 8}),
    A("hiera", "HieraForImageClassification", image64_label, {
        "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 4], "image_size": [64, 64], "patch_size": [7, 7]}),
    A("imagegpt", "ImageGPTForCausalImageModeling", lambda config: {"input_ids": ids(config), "labels": ids(config)}),
    A("levit", "LevitForImageClassification", image64_label, {
        "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [4, 4, 4],
        "image_size": 64, "patch_size": 16, "mlp_ratio": [2, 2, 2], "attention_ratio": [2, 2, 2]}),
    A("mask2former", "Mask2FormerForUniversalSegmentation", image64, {
        "backbone_config": {**_SWIN, "model_type": "swin", "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 4],
                            "out_features": ["stage1", "stage2", "stage3", "stage4"]},
        "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 16,
        "dim_feedforward": 16, "encoder_layers": 1, "decoder_layers": 2, "num_queries": 4, "num_attention_heads": 2}),
    A("mobilenet_v1", "MobileNetV1ForImageClassification", image64_label, {"depth_multiplier": 0.25}),
    A("mobilenet_v2", "MobileNetV2ForImageClassification", image64_label, {"depth_multiplier": 0.25}),
    A("mobilevit", "MobileViTForImageClassification", image64_label, {
        "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 16, 16, 24, 32, 32, 48], "image_size": 64, "patch_size": 2}),
    A("mobilevitv2", "MobileViTV2ForImageClassification", image64_label, {
        "base_attn_unit_dims": [16, 24, 32], "n_attn_blocks": [1, 1, 1], "width_multiplier": 0.25, "image_size": 64,
        "patch_size": 2}),
    A("poolformer", "PoolFormerForImageClassification", image64_label, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    A("pvt_v2", "PvtV2ForImageClassification", image64_label, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]}),
    A("regnet", "RegNetForImageClassification", image_label, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "embedding_size": 8, "groups_width": 4}),
    A("resnet", "ResNetForImageClassification", image64_label, {
        "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    A("rt_detr", "RTDetrForObjectDetection", _detection, {
        "backbone_config": {"model_type": "rt_detr_resnet", "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32],
                            "depths": [1, 1, 1, 1], "out_features": ["stage2", "stage3", "stage4"]},
        "backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False, "encoder_hidden_dim": 32,
        "encoder_in_channels": [16, 24, 32], "encoder_ffn_dim": 32, "num_queries": 5, "decoder_in_channels": [32, 32, 32],
        "decoder_ffn_dim": 32, "num_denoising": 0, "eval_size": None, "decoder_n_points": 2, "d_model": 32}),
    A("segformer", "SegformerForSemanticSegmentation", _segmented, {
        "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
        "decoder_hidden_size": 8}),
    A("swiftformer", "SwiftFormerForImageClassification", image64_label, {
        "depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32], "image_size": 64}),
    A("swin", "SwinForImageClassification", image_label, {**_SWIN}),
    A("swin2sr", "Swin2SRForImageSuperResolution", image, {
        "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4, "patch_size": 1, "upscale": 2}),
    A("swinv2", "Swinv2ForImageClassification", image_label, {**_SWIN}),
    A("table-transformer", "TableTransformerForObjectDetection", _detection, {**_DETR, "backbone_config": _RESNET}),
    A("timesformer", "TimesformerForVideoClassification", video, {"num_frames": 2}),
    A("upernet", "UperNetForSemanticSegmentation", _segmented, {
        "hidden_size": 16, "pool_scales": [1, 2], "use_auxiliary_head": True, "auxiliary_in_channels": 24,
        "auxiliary_channels": 8, "backbone": None, "backbone_config": {
            "model_type": "convnext", **_PYRAMID, "out_features": ["stage1", "stage2", "stage3", "stage4"]}}),
    A("videomae", "VideoMAEForVideoClassification", video, {"num_frames": 2, "tubelet_size": 2}),
    A("vit", "ViTForImageClassification", image_label),
    A("vit_mae", "ViTMAEForPreTraining", image, {
        "decoder_hidden_size": 16, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2,
        "decoder_intermediate_size": 16}),
    A("vitdet", "VitDetModel", image, {"window_size": 2, "window_block_indices": [0], "pretrain_image_size": SIDE}),
    A("vivit", "VivitForVideoClassification", video, {"num_frames": 2, "tubelet_size": [2, 8, 8]}),
    A("yolos", "YolosForObjectDetection", image, {"num_detection_tokens": 5, "image_size": [SIDE, SIDE]}),
]  # fmt: skip

_WAVE = {
    "conv_dim": [16, 16, 16], "conv_kernel": [8, 8, 4], "conv_stride": [4, 4, 4], "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 3, "mask_time_length": 2,
}  # fmt: skip
_SPEECH = {"max_source_positions": 32, "max_target_positions": 64, "num_mel_bins": 8, "input_feat_per_channel": 8}


def _ctc(config: Any) -> Call:
    return {**waveform(config), "labels": ids(config, 4)}


def _frames(config: Any) -> Call:
    """A spectrogram by time, as speech translation reads it."""
    return {"input_features": torch.randn(BATCH, 32, 8), "decoder_input_ids": ids(config, 8)}


def _encoder_frames(config: Any) -> Call:
    return {"input_features": torch.randn(BATCH, 32, 16), "attention_mask": torch.ones(BATCH, 32, dtype=torch.long)}


def _codebooks(config: Any) -> Call:
    """Tokens of each codebook, one row a codebook."""
    return {"input_ids": torch.randint(0, 90, (BATCH * config.num_codebooks, 8))}


def _sound_and_text(config: Any) -> Call:
    return {**text(config), "decoder_input_ids": torch.randint(0, 60, (BATCH * config.decoder.num_codebooks, 6))}


def _samples(config: Any) -> Call:
    return {"input_values": torch.randn(BATCH, 1, 640)}


AUDIO = [
    A("audio-spectrogram-transformer", "ASTForAudioClassification", lambda config: {
        "input_values": torch.randn(BATCH, 32, 16), "labels": torch.tensor([0, 1])}, {
        "num_mel_bins": 16, "max_length": 32, "frequency_stride": 8, "time_stride": 8}),
    A("clap_audio", "ClapAudioModel", lambda config: {"input_features": torch.randn(BATCH, 1, 64, 16)}, {
        "num_mel_bins": 16, "spec_size": 32, "patch_size": 4, "patch_stride": [4, 4], "depths": [1, 1],
        "num_attention_heads": [2, 2], "window_size": 2, "patch_embeds_hidden_size": 8, "hidden_size": 16}),
    A("dac", "DacModel", _samples, {
        "encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "upsampling_ratios": [4, 2], "decoder_hidden_size": 16,
        "n_codebooks": 2, "codebook_size": 16, "codebook_dim": 4, "hidden_size": 32}),
    A("data2vec-audio", "Data2VecAudioForCTC", _ctc, {**_WAVE, "conv_pos_kernel_size": 3, "num_conv_pos_embeddings": 2}),
    A("encodec", "EncodecModel", _samples, {
        "num_filters": 4, "upsampling_ratios": [2, 2], "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16,
        "num_lstm_layers": 1, "target_bandwidths": [48.0], "sampling_rate": 16000}),
    A("hubert", "HubertForCTC", _ctc, {**_WAVE}),
    A("mimi", "MimiModel", _samples, {
        "num_filters": 4, "upsampling_ratios": [2, 2], "hidden_size": 32, "codebook_size": 16, "codebook_dim": 16,
        "vector_quantization_hidden_dimension": 16, "num_quantizers": 2, "upsample_groups": 32, "sliding_window": 8,
        "frame_rate": 3000, "sampling_rate": 24000}),
    A("musicgen_decoder", "MusicgenForCausalLM", _codebooks, {"num_codebooks": 2, "ffn_dim": 48}),
    A("musicgen", "MusicgenForConditionalGeneration", _sound_and_text, {
        "text_encoder": {"model_type": "t5"},
        "audio_encoder": {"model_type": "encodec", "num_filters": 4, "upsampling_ratios": [2, 2], "hidden_size": 16,
                          "codebook_size": 64, "codebook_dim": 16, "num_lstm_layers": 1},
        "decoder": {"num_codebooks": 2, "ffn_dim": 48, "vocab_size": 64, "pad_token_id": 63, "bos_token_id": 63}}),
    A("seamless_m4t_v2_text", "SeamlessM4Tv2ForTextToText", lambda config: {**text(config), "labels": ids(config, 8)}, {
        "hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1, "speech_encoder_layers": 1, "t2u_encoder_layers": 1,
        "t2u_decoder_layers": 1, "speech_encoder_attention_heads": 4, "speech_encoder_intermediate_size": 32,
        "t2u_encoder_attention_heads": 4, "t2u_decoder_attention_heads": 4, "t2u_encoder_ffn_dim": 32,
        "t2u_decoder_ffn_dim": 32, "t2u_vocab_size": 99, "unit_hifi_gan_vocab_size": 99, "char_vocab_size": 99}),
    A("sew", "SEWForCTC", _ctc, {**_WAVE, "squeeze_factor": 2}),
    A("speech_to_text", "Speech2TextForConditionalGeneration", _frames, {**_SPEECH, "conv_channels": 16}),
    A("speecht5", "SpeechT5ForSpeechToText", lambda config: {**waveform(config), "labels": ids(config, 8)}, {**_WAVE}),
    A("univnet", "UnivNetModel", lambda config: {
        "input_features": torch.randn(BATCH, 8, 8), "noise_sequence": torch.randn(BATCH, 8, 4)}, {
        "model_in_channels": 4, "model_hidden_channels": 4, "num_mel_bins": 8, "resblock_kernel_sizes": [3],
        "resblock_stride_sizes": [4], "resblock_dilation_sizes": [[1, 3]], "kernel_predictor_hidden_channels": 4}),
    A("vits", "VitsModel", text, {
        "upsample_initial_channel": 16, "upsample_rates": [4, 4], "upsample_kernel_sizes": [8, 8], "flow_size": 32,
        "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1]], "prior_encoder_num_wavenet_layers": 1,
        "wavenet_dilation_rate": 1, "ffn_dim": 32, "spectrogram_bins": 16}),
    A("wav2vec2", "Wav2Vec2ForCTC", _ctc, {**_WAVE}),
    A("wav2vec2-bert", "Wav2Vec2BertModel", _encoder_frames, {"feature_projection_input_dim": 16}),
    A("wav2vec2-conformer", "Wav2Vec2ConformerModel", waveform, {**_WAVE}),
    A("wavlm", "WavLMModel", waveform, {**_WAVE}),
    A("whisper", "WhisperForConditionalGeneration", spectrogram, {**_SPEECH}),
]  # fmt: skip

_TOWERS: dict[str, Any] = {"text_config": {}, "vision_config": {}}


def _visual(config: Any) -> Call:
    """Text beside features of image regions."""
    return {**text(config), "visual_embeds": torch.randn(BATCH, 4, 24), "visual_attention_mask": torch.ones(BATCH, 4)}


def _regions(config: Any) -> Call:
    return {**text(config), "visual_feats": torch.randn(BATCH, 4, 24), "visual_pos": torch.rand(BATCH, 4, 4)}


def _image_tokens(number: int) -> Any:
    """Text that has ``number`` places for features of the image."""

    def inputs(config: Any) -> Call:
        token = getattr(config, "image_token_id", None) or config.image_token_index
        tokens = ids(config, number + 8)
        tokens[:, 2 : 2 + number] = token
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "pixel_values": pixels(), "labels": tokens}

    return inputs


def _document(config: Any) -> Call:
    corners = torch.randint(0, 30, (BATCH, 16, 2))
    return {**text(config), "bbox": torch.cat([corners, corners + 5], -1), "pixel_values": pixels()}


def _grounded(config: Any) -> Call:
    return {"pixel_values": pixels(), "input_ids": ids(config, 8).repeat(1, 1), "attention_mask": torch.ones(BATCH, 8)}


def _loss(config: Any) -> Call:
    return {**image_text(config), "return_loss": True}


MULTIMODAL = [
    A("align", "AlignModel", lambda config: {**text(config), "pixel_values": pixels(side=64)}, {"vision_config": {
        "kernel_sizes": [3, 3], "in_channels": [32, 8], "out_channels": [8, 16], "depthwise_padding": [], "strides": [1, 2],
        "num_block_repeats": [1, 1], "expand_ratios": [1, 2], "hidden_dim": 24, "width_coefficient": 1.0,
        "depth_coefficient": 1.0}, "projection_dim": 16}),
    A("altclip", "AltCLIPModel", image_text, {"text_config": {"project_dim": 24}, "projection_dim": 24}),
    A("blip", "BlipForConditionalGeneration", image_text, {**_TOWERS}),
    A("blip-2", "Blip2ForConditionalGeneration", _image_tokens(4), {
        "text_config": {"model_type": "opt", "word_embed_proj_dim": 32}, "num_query_tokens": 4, "image_token_id": 98,
        "qformer_config": {"encoder_hidden_size": 32}}),
    A("bridgetower", "BridgeTowerModel", image_text, {
        "hidden_size": 64, "text_config": {"hidden_size": 64}, "num_hidden_layers": 2,
        "vision_config": {"patch_size": 8, "hidden_size": 64}}),
    A("chinese_clip", "ChineseCLIPModel", image_text, {**_TOWERS}),
    A("clip", "CLIPModel", _loss, {**_TOWERS}),
    A("clipseg", "CLIPSegForImageSegmentation", image_text, {
        "extract_layers": [0, 1], "reduce_dim": 16, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 16,
        "text_config": {}, "vision_config": {}}),
    A("flava", "FlavaModel", image_text, {"multimodal_config": {}, "image_config": {}, "text_config": {}}),
    A("git", "GitForCausalLM", image_text, {"vision_config": {}}),
    A("groupvit", "GroupViTModel", image_text, {"vision_config": {
        "depths": [1, 1], "num_group_tokens": [4, 0], "num_output_groups": [4, 2]}, "projection_intermediate_dim": 32}),
    A("idefics3", "Idefics3ForConditionalGeneration", lambda config: {
        **_image_tokens(4)(config), "pixel_values": torch.rand(BATCH, 1, 3, SIDE, SIDE)}, {
        "text_config": {"model_type": "llama"}, "vision_config": {}, "scale_factor": 2, "image_token_id": 98}),
    A("kosmos-2", "Kosmos2Model", lambda config: {**image_text(config), "image_embeds_position_mask": torch.tensor(
        [[0, 1, 1, 1, 1] + [0] * 11] * BATCH)}, {
        "text_config": {"embed_dim": 32, "layers": 2, "attention_heads": 4}, "vision_config": {}, "latent_query_num": 4}),
    A("layoutlmv3", "LayoutLMv3Model", _document, {
        "max_2d_position_embeddings": 64, "coordinate_size": 5, "shape_size": 6, "input_size": SIDE,
        "rel_pos_bins": 8, "rel_2d_pos_bins": 8}),
    A("llava", "LlavaForConditionalGeneration", _image_tokens(16), {
        "text_config": {"model_type": "llama"}, "vision_config": {"model_type": "clip_vision_model"},
        "image_token_id": 98, "image_token_index": 98, "vision_feature_layer": -1}),
    A("lxmert", "LxmertModel", _regions, {
        "visual_feat_dim": 24, "l_layers": 1, "x_layers": 1, "r_layers": 1, "num_hidden_layers": 2}),
    A("owlvit", "OwlViTModel", image_text, {**_TOWERS}),
    A("paligemma", "PaliGemmaForConditionalGeneration", lambda config: {
        **_image_tokens(16)(config), "token_type_ids": torch.zeros(BATCH, 24, dtype=torch.long)}, {
        "text_config": {"model_type": "gemma"}, "vision_config": {"model_type": "siglip_vision_model"},
        "projection_dim": 32, "image_token_id": 98, "image_token_index": 98}),
    A("perceiver", "PerceiverForMaskedLM", _bytes, {
        "d_latents": 16, "d_model": 32, "num_latents": 8, "num_self_attends_per_block": 1, "num_blocks": 1,
        "num_self_attention_heads": 2, "num_cross_attention_heads": 2, "qk_channels": 16, "v_channels": 16,
        "vocab_size": 262}),
    A("pix2struct", "Pix2StructForConditionalGeneration", lambda config: {
        "flattened_patches": torch.rand(BATCH, 16, 2 + 192), "labels": ids(config, 8)}, {
        "vision_config": {"patch_embed_hidden_size": 192, "seq_len": 16}, "text_config": {"hidden_size": 32}}),
    A("siglip", "SiglipModel", _loss, {**_TOWERS}),
    A("vilt", "ViltModel", image_text),
    A("visual_bert", "VisualBertModel", _visual, {"visual_embedding_dim": 24}),
    A("xclip", "XCLIPModel", lambda config: {**text(config), "pixel_values": torch.rand(BATCH, 2, 3, SIDE, SIDE)}, {
        "vision_config": {"num_frames": 2, "mit_hidden_size": 32, "mit_intermediate_size": 32, "mit_num_attention_heads": 4,
                          "mit_num_hidden_layers": 1, "prompt_layers": 1}, "text_config": {}, "prompt_layers": 1,
        "projection_dim": 32}),
]  # fmt: skip


def _series(config: Any) -> Call:
    past = config.context_length + max(config.lags_sequence)
    time = config.num_time_features
    return {
        "past_values": torch.rand(BATCH, past),
        "past_time_features": torch.rand(BATCH, past, time),
        "past_observed_mask": torch.ones(BATCH, past),
        "future_values": torch.rand(BATCH, config.prediction_length),
        "future_time_features": torch.rand(BATCH, config.prediction_length, time),
    }


def _patched(config: Any) -> Call:
    return {"past_values": torch.rand(BATCH, 16, 3), "future_values": torch.rand(BATCH, 4, 3)}


_LAGS = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "num_time_features": 2}
_PATCHES = {"num_input_channels": 3, "context_length": 16, "patch_length": 4, "patch_stride": 4, "prediction_length": 4}

SERIES = [
    A("autoformer", "AutoformerModel", _series, {**_LAGS, "label_length": 4}),
    A("decision_transformer", "DecisionTransformerModel", lambda config: {
        "states": torch.randn(BATCH, 6, 5), "actions": torch.randn(BATCH, 6, 2), "rewards": torch.randn(BATCH, 6, 1),
        "returns_to_go": torch.randn(BATCH, 6, 1), "timesteps": torch.randint(0, 50, (BATCH, 6)),
        "attention_mask": torch.ones(BATCH, 6)}, {"state_dim": 5, "act_dim": 2, "max_ep_len": 60}),
    A("informer", "InformerModel", _series, {**_LAGS}),
    A("patchtsmixer", "PatchTSMixerForPrediction", _patched, {**_PATCHES, "d_model": 16}),
    A("patchtst", "PatchTSTForPrediction", _patched, {**_PATCHES}),
    A("time_series_transformer", "TimeSeriesTransformerModel", _series, {**_LAGS}),
]  # fmt: skip
