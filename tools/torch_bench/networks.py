"""The networks that `fornax bench torch` measures, with random weights, and how each is called."""

import dataclasses
import typing

import torch
import transformers
from torch import nn


class Outputs(nn.Module):
    """One output of a network of `transformers`, by the values of its keywords in order."""

    def __init__(self, model, output, names):
        super().__init__()
        self.model, self.output, self.names = model, output, names
        self.fixed = {"use_cache": False} if getattr(model.config, "use_cache", False) else {}

    def forward(self, *values):
        return getattr(self.model(**dict(zip(self.names, values)), **self.fixed), self.output)


class Call:
    """Calls of a network with the same inputs. `prepare()` is not measured, `call()` is; it returns what is compared."""

    first_calls = 1  # after which everything is compiled

    def __init__(self, run, inputs):
        self._run, self._inputs = run, inputs

    def prepare(self):
        pass

    def call(self):
        return self._run(*self._inputs)


class Inference:
    def __init__(self, model, inputs):
        self.model, self._inputs = model.eval(), inputs

    def calls(self, compile_way):
        return Call(compile_way(self.model), self._inputs)


class DecodeCall:
    """A token after the other behind a prompt, whose part of the cache is made by eager torch."""

    first_calls = 3  # sizes of a cache that grows are open from the second token on

    def __init__(self, run, model, prompt, tokens, is_static):
        self._run, self._model, self._prompt, self._is_static = run, model, prompt, is_static
        self._tokens = tokens
        self._cache, self._place = None, 0

    def prepare(self):
        begin, end = self._prompt.shape[1], self._prompt.shape[1] + self._tokens.shape[1]
        if begin <= self._place < end:
            return
        if self._is_static and self._cache is not None:
            for layer in self._cache.layers:
                layer.cumulative_length.fill_(begin)
        else:
            config = self._model.config
            self._cache = (transformers.StaticCache(config=config, max_cache_len=end) if self._is_static
                           else transformers.DynamicCache(config=config))
            self._model(input_ids=self._prompt, past_key_values=self._cache, use_cache=True)
        self._place = begin

    def call(self):
        begin = self._place - self._prompt.shape[1]
        place = torch.tensor([[self._place]])
        self._place += 1
        return self._run(input_ids=self._tokens[:, begin:begin + 1], position_ids=place, past_key_values=self._cache,
                         use_cache=True).logits


class Decode:
    def __init__(self, model, prompt, tokens, is_static):
        self.model = model.eval()
        self._arguments = (prompt, tokens, is_static)

    def calls(self, compile_way):
        return DecodeCall(compile_way(self.model), self.model, *self._arguments)


class TrainingCall:
    first_calls = 1

    def __init__(self, run, model, inputs):
        self._run, self._inputs = run, inputs
        self._optimiser = torch.optim.SGD(model.parameters(), lr=0.001)

    def prepare(self):
        pass

    def call(self):
        with torch.enable_grad():
            loss = self._run(**self._inputs).loss
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
        return loss.detach()


class Training:
    """Steps of training: forward, backward, and the optimiser in torch. Each way has a network of its own."""

    def __init__(self, make, inputs):
        self._make, self._inputs = make, inputs

    def calls(self, compile_way):
        torch.manual_seed(11)
        model = self._make().train()
        return TrainingCall(compile_way(model), model, self._inputs)


# --- Networks ------------------------------------------------------------------------------------


class Tagger(nn.Module):
    def __init__(self, words, width, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 64)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def _convolutions(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
                         nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(_convolutions(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in reversed(widths[:-1]))
        self.join = nn.ModuleList(_convolutions(2 * a, a) for a in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skipped in zip(self.up, self.join, reversed(kept[:-1])):
            x = join(torch.cat([skipped, up(x)], 1))
        return self.head(x)


def _words(count, words, batch=1):
    return torch.randint(3, words, (batch, count))


def _of(model, output="logits", **inputs):
    return Inference(Outputs(model, output, tuple(inputs)), tuple(inputs.values()))


def bert(small):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64} if small else {}
    config = transformers.BertConfig(**sizes)
    return _of(transformers.BertForMaskedLM(config), input_ids=_words(16 if small else 128, config.vocab_size))


def vit(small):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
             "patch_size": 8} if small else {}
    config = transformers.ViTConfig(**sizes)
    return _of(transformers.ViTForImageClassification(config),
               pixel_values=torch.randn(1, 3, config.image_size, config.image_size))


def whisper(small):
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "vocab_size": 97,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_mel_bins": 16,
             "max_source_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
             "decoder_start_token_id": 1} if small else {}
    config = transformers.WhisperConfig(**sizes, suppress_tokens=None, begin_suppress_tokens=None)
    features = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    return _of(transformers.WhisperForConditionalGeneration(config), input_features=features,
               decoder_input_ids=_words(4 if small else 16, config.vocab_size))


def _llama(small, is_static):
    sizes = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2} if small else {
        "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
        "num_attention_heads": 12, "num_key_value_heads": 4}
    config = transformers.LlamaConfig(**sizes)
    prompt = 8 if small else 64
    tokens = _words(2 * prompt, config.vocab_size)
    return Decode(transformers.LlamaForCausalLM(config), tokens[:, :prompt], tokens[:, prompt:], is_static)


def t5(small):
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 97} if small else {}
    config = transformers.T5Config(**sizes, decoder_start_token_id=0)
    return _of(transformers.T5ForConditionalGeneration(config), input_ids=_words(8 if small else 64, config.vocab_size),
               decoder_input_ids=_words(4 if small else 16, config.vocab_size))


def clip(small):
    each = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4} if small else {}
    config = transformers.CLIPConfig(
        text_config={**each, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config={**each, **({"image_size": 32, "patch_size": 8} if small else {})})
    size = config.vision_config.image_size
    return _of(transformers.CLIPModel(config), "logits_per_image", input_ids=_words(16, config.text_config.vocab_size),
               pixel_values=torch.randn(1, 3, size, size))


def mobilenet_v2(small):
    config = transformers.MobileNetV2Config(**({"image_size": 32, "depth_multiplier": 0.35} if small else {}))
    return _of(transformers.MobileNetV2ForImageClassification(config),
               pixel_values=torch.randn(1, 3, config.image_size, config.image_size))


def _resnet(depths, kind, sizes=None):
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        depths=depths, layer_type=kind, **(sizes or {}), num_labels=10))


SMALL_RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32]}
RESNET18 = {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512]}


def resnet(small):
    model = _resnet([1, 1], "basic", SMALL_RESNET) if small else _resnet([3, 4, 6, 3], "bottleneck")
    size = 32 if small else 224
    return _of(model, pixel_values=torch.randn(1, 3, size, size))


def lstm(small):
    model = Tagger(97, 12, 16, 1) if small else Tagger(10000, 256, 512, 2)
    return Inference(model, (_words(6 if small else 32, model.embedding.num_embeddings),))


def unet(small):
    size = 32 if small else 256
    return Inference(UNet(4, 2) if small else UNet(32, 4), (torch.randn(1, 3, size, size),))


def resnet18_training(small):
    make = (lambda: _resnet([1, 1], "basic", SMALL_RESNET)) if small else (
        lambda: _resnet([2, 2, 2, 2], "basic", RESNET18))
    size = 32 if small else 112
    return Training(make, {"pixel_values": torch.randn(4, 3, size, size), "labels": torch.randint(0, 10, (4,))})


def bert_mini_training(small):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
             "vocab_size": 97} if small else {
        "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    # Random numbers are torch's own, so dropout is off.
    config = transformers.BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    words = _words(8 if small else 64, config.vocab_size, batch=4)
    return Training(lambda: transformers.BertForMaskedLM(config), {"input_ids": words, "labels": words})


@dataclasses.dataclass(frozen=True)
class Network:
    make: typing.Callable  # of whether it is to be small
    summary: str
    is_training: bool = False


NETWORKS = {
    "bert": Network(bert, "BERT-base, 128 words"),
    "vit": Network(vit, "ViT-B/16, 224 x 224 pixels"),
    "whisper": Network(whisper, "Whisper-tiny, 30 s of sound and 16 words"),
    "llama_static": Network(lambda small: _llama(small, True), "Llama of 12 layers and 768 channels, a word behind 64 to "
                            "128, static cache"),
    "llama_dynamic": Network(lambda small: _llama(small, False), "the same, a cache that grows"),
    "t5": Network(t5, "T5-small, 64 and 16 words"),
    "clip": Network(clip, "CLIP ViT-B/32, a picture and 16 words"),
    "mobilenet_v2": Network(mobilenet_v2, "MobileNetV2, 224 x 224 pixels"),
    "resnet": Network(resnet, "ResNet-50, 224 x 224 pixels"),
    "lstm": Network(lstm, "LSTM of two layers and 512 channels, 32 words"),
    "unet": Network(unet, "U-Net of 32 to 512 channels, 256 x 256 pixels"),
    "resnet18_training": Network(resnet18_training, "ResNet-18, 4 pictures of 112 x 112", is_training=True),
    "bert_mini_training": Network(bert_mini_training, "BERT-mini, 4 x 64 words", is_training=True),
}
