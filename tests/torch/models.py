"""Networks of `transformers` with random weights, in small sizes: what models_test.py runs."""

import dataclasses
import pathlib
import sys
import typing

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tools.torch_bench.networks import Outputs  # noqa: E402

WORDS = 97


@dataclasses.dataclass
class Case:
    make: typing.Callable  # the network
    inputs: typing.Callable  # keywords of a size
    sizes: tuple = (5, 12)
    output: str = "logits"


def words(*shape):
    return torch.randint(3, WORDS, shape)


def _masked_words(count):
    mask = torch.ones(2, count, dtype=torch.int64)
    mask[1, count - 2:] = 0
    return {"input_ids": words(2, count), "attention_mask": mask}


def _bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64))


def _vit():
    return transformers.ViTForImageClassification(transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64))


def _whisper():
    return transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=32,
        max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64))


def _t5():
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0))


def _clip():
    each = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return transformers.CLIPModel(transformers.CLIPConfig(
        text_config={**each, "vocab_size": WORDS, "max_position_embeddings": 32, "eos_token_id": 2, "bos_token_id": 1,
                     "pad_token_id": 0},
        vision_config={**each, "image_size": 32, "patch_size": 8}, projection_dim=16))


def _mobilenet():
    return transformers.MobileNetV2ForImageClassification(transformers.MobileNetV2Config(
        image_size=32, depth_multiplier=0.35))


def _resnet():
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic"))


def _pixels(count):
    return {"pixel_values": torch.randn(count, 3, 32, 32)}


CASES = {
    "bert": Case(_bert, _masked_words),
    "vit": Case(_vit, _pixels, (2, 3)),
    "whisper": Case(_whisper, lambda count: {"input_features": torch.randn(2, 16, 64),
                                             "decoder_input_ids": words(2, count)}),
    "llama": Case(llama, lambda count: {"input_ids": words(2, count)}),
    "t5": Case(_t5, lambda count: {"input_ids": words(2, count + 2), "decoder_input_ids": words(2, count)}),
    "clip": Case(_clip, lambda count: {"input_ids": words(3, count), **_pixels(2)}, output="logits_per_image"),
    "mobilenet_v2": Case(_mobilenet, _pixels, (2, 3)),
    "resnet": Case(_resnet, lambda count: {"pixel_values": torch.randn(2, 3, count, count)}, (32, 48)),
}


def network(name):
    """A network that is ready to be called, and its case."""
    torch.manual_seed(11)
    case = CASES[name]
    return Outputs(case.make().eval(), case.output, tuple(case.inputs(case.sizes[0]))), case
