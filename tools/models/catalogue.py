"""The networks by name: how each is built, and a small variant of it for tests."""

import dataclasses
import functools
from typing import Callable

from tools.models import quantized
from tools.models.networks import (
    bert, efficientnet, limits, llama, mobilenet, recurrent, resnet, unet, vit, whisper, yolo)


@dataclasses.dataclass(frozen=True)
class Network:
    summary: str
    build: Callable  # returns a builder.Model
    small: dict  # parameters that make it quick to build and run


SMALL_YOLO = dict(width=0.125, image=64, classes=5)
SMALL_TRANSFORMER = dict(layers=1, width=48, heads=4)
SMALL_BERT = dict(SMALL_TRANSFORMER, vocabulary=100)
SMALL_WHISPER = dict(SMALL_TRANSFORMER, frames=40)
SMALL_DECODER = dict(SMALL_WHISPER, vocabulary=100)
SMALL_LLAMA = dict(layers=1, width=64, heads=4, kv_heads=2, hidden=96, vocabulary=100)
SMALL_TAGGER = dict(width=12, hidden=8, vocabulary=50)
SMALL_RESNET = dict(width=8, blocks=(1, 1, 1, 1), image=64, classes=10)
SMALL_MOBILENET = dict(width=0.25, image=64, classes=10)
SMALL_UNET = dict(features=4, depth=2, image=32)

FLOAT = {
    "mobilenet_v2": Network("classifier, depthwise convolutions, ReLU6", mobilenet.mobilenet_v2, SMALL_MOBILENET),
    "resnet50": Network("classifier, bottlenecks", resnet.resnet50, SMALL_RESNET),
    "efficientnet_b0": Network("classifier, squeeze-and-excitation, SiLU, batch normalisations kept",
                               efficientnet.efficientnet_b0, dict(width=0.25, image=64, classes=10)),
    "yolov8n": Network("detector, 640 x 640, boxes decoded", yolo.yolov8, SMALL_YOLO),
    "yolov8n_dynamic": Network("detector, images of any size, anchors computed in the graph",
                               functools.partial(yolo.yolov8, dynamic=True), SMALL_YOLO),
    "yolov8n_nms": Network("detector with NonMaxSuppression, as many results as were found",
                           functools.partial(yolo.yolov8, nms=True), SMALL_YOLO),
    "unet": Network("segmentation, transposed convolutions, batch normalisations kept", unet.unet, SMALL_UNET),
    "unet_resize": Network("segmentation, bilinear resizing, images of any size",
                           functools.partial(unet.unet, mode="resize"), SMALL_UNET),
    "bert_base": Network("encoder of text, 12 layers, LayerNormalization", bert.bert, SMALL_BERT),
    "bert_base_opset11": Network("the same, layer normalisations decomposed", functools.partial(bert.bert, opset=11),
                                 SMALL_BERT),
    "vit_b16": Network("classifier, transformer of image patches", vit.vit,
                       dict(SMALL_TRANSFORMER, image=32, classes=10)),
    "whisper_tiny_encoder": Network("encoder of speech", whisper.whisper_encoder, SMALL_WHISPER),
    "whisper_tiny_decoder": Network("decoder of speech, first step",
                                    functools.partial(whisper.whisper_decoder, with_past=False), SMALL_DECODER),
    "whisper_tiny_decoder_with_past": Network("decoder of speech, later steps, cache as inputs and outputs",
                                              functools.partial(whisper.whisper_decoder, with_past=True),
                                              SMALL_DECODER),
    "llama_small": Network("decoder of text, 6 layers of 768, cache as inputs and outputs", llama.llama, SMALL_LLAMA),
    "llama_small_opset23": Network("the same with RMSNormalization, RotaryEmbedding and Attention",
                                   functools.partial(llama.llama, opset=23), SMALL_LLAMA),
    "lstm_tagger": Network("bidirectional LSTM over tokens", recurrent.tagger, SMALL_TAGGER),
    "gru_tagger": Network("bidirectional GRU over tokens, lengths as an input",
                          functools.partial(recurrent.tagger, kind="GRU"), SMALL_TAGGER),
}


def quantized_network(summary, base, quantize):
    def build(**parameters):
        return quantize(FLOAT[base].build(**parameters))

    return Network(summary, build, FLOAT[base].small)


QUANTIZED = {
    "mobilenet_v2_qdq": quantized_network("int8 activations and weights, QuantizeLinear/DequantizeLinear, per channel",
                                          "mobilenet_v2", functools.partial(quantized.static_qdq, activations="int8")),
    "resnet50_qdq": quantized_network("uint8 activations, int8 weights, per channel", "resnet50",
                                      functools.partial(quantized.static_qdq, activations="uint8")),
    "bert_base_qdq": quantized_network(
        "uint8 activations, int8 weights, per channel, products only", "bert_base",
        functools.partial(quantized.static_qdq, activations="uint8", operators=["MatMul", "Gemm"])),
    "bert_base_dynamic": quantized_network("DynamicQuantizeLinear and MatMulInteger", "bert_base", quantized.dynamic),
    "lstm_tagger_dynamic": quantized_network("DynamicQuantizeLSTM", "lstm_tagger", quantized.dynamic),
    "llama_small_q4": quantized_network("weights of 4 bits in blocks of 32, MatMulNBits", "llama_small",
                                        quantized.four_bits),
}

NETWORKS = {**FLOAT, **QUANTIZED}


@dataclasses.dataclass(frozen=True)
class Limited(Network):
    amount: Callable  # of the network's parameters: (how much, "flop" or "byte"), what the limit is of


SMALL_ROWS = dict(rows=64, width=96)
# Each is bound by one limit of the machine, which a good kernel comes near to. Not among the networks.
LIMITS = {
    "product": Limited("one product of two inputs", limits.product, dict(size=64), lambda size=1024: (2 * size**3, "flop")),
    "weighted_product": Limited("one product with a constant", limits.weighted_product, dict(size=64),
                                lambda size=1024: (2 * size**3, "flop")),
    "attention": Limited("softmax(q k) v, 12 heads, 1,024 keys", limits.attention, dict(heads=2, keys=32, width=16),
                         lambda heads=12, keys=1024, width=64: (4 * heads * keys * keys * width, "flop")),
    "elementwise": Limited("functions of single elements", limits.elementwise, SMALL_ROWS,
                           lambda rows=4096, width=4096: (8 * rows * width, "byte")),
    "softmax": Limited("rows of 4,096", limits.softmax, SMALL_ROWS,
                       lambda rows=4096, width=4096: (8 * rows * width, "byte")),
    "layer_norm": Limited("a sum and its normalisation", limits.layer_norm, SMALL_ROWS,
                          lambda rows=4096, width=4096: (12 * rows * width, "byte")),
}
