"""Networks in PyTorch that more than one of these programs runs, with weights that the caller seeds."""

from torch import nn

# Expansion, channels, blocks, stride of the first block.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolution(before, after, size, stride=1, groups=1, activated=True):
    layer = nn.Conv2d(before, after, size, stride, size // 2, groups=groups)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.normal_(layer.bias, std=0.1)
    return nn.Sequential(layer, nn.ReLU6()) if activated else layer


class Block(nn.Module):
    def __init__(self, before, after, expansion, stride):
        super().__init__()
        hidden = before * expansion
        first = [convolution(before, hidden, 1)] if expansion != 1 else []
        self.layers = nn.Sequential(*first, convolution(hidden, hidden, 3, stride, hidden), convolution(hidden, after, 1, activated=False))
        self.residual = stride == 1 and before == after

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNet(nn.Module):
    """MobileNetV2 whose batch normalisations are folded away."""

    def __init__(self):
        super().__init__()
        layers, channels = [convolution(3, 32, 3, 2)], 32
        for expansion, after, blocks, stride in STAGES:
            for i in range(blocks):
                layers.append(Block(channels, after, expansion, stride if i == 0 else 1))
                channels = after
        self.features = nn.Sequential(*layers, convolution(channels, 1280, 1))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(nn.functional.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1))


class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each behind a normalisation and beside a residual connection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def attention(self, x):
        batch, length, width = x.shape
        query, key, value = (layer(x).reshape(batch, length, self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value))
        weights = (query @ key.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.feed_forward(self.before_feed_forward(x))
