"""MobileNetV2 as torchvision has it: inverted residuals with depthwise convolutions and ReLU6."""

from tools.models.builder import Builder

# Expansion, channels, blocks, stride of the first block.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def scaled(channels, width):
    """A multiple of 8, and not more than a tenth below channels * width."""
    wanted = channels * width
    result = max(8, int(wanted + 4) // 8 * 8)
    return result + 8 if result < 0.9 * wanted else result


def inverted_residual(b, x, channels_in, channels, expansion, stride):
    hidden = channels_in * expansion
    y = x
    with b.scope("conv"):
        if expansion != 1:
            with b.scope("0.0"):
                y = b.conv(y, channels_in, hidden, 1, activation="relu6", norm="folded")
        with b.scope("1.0" if expansion != 1 else "0.0"):
            y = b.conv(y, hidden, hidden, 3, stride, group=hidden, activation="relu6", norm="folded")
        with b.scope("2" if expansion != 1 else "1"):
            y = b.conv(y, hidden, channels, 1, norm="folded")
    return b.op("Add", x, y) if stride == 1 and channels_in == channels else y


def mobilenet_v2(width=1.0, image=224, classes=1000, seed=1):
    b = Builder("mobilenet_v2", seed=seed)
    x = b.input("input", "float32", ("batch", 3, image, image), "image -2 2", (4, 3, image, image))
    channels = scaled(32, width)
    with b.scope("features.0.0"):
        x = b.conv(x, 3, channels, 3, 2, activation="relu6", norm="folded")
    block = 1
    for expansion, stage_channels, blocks, stride in STAGES:
        for i in range(blocks):
            with b.scope(f"features.{block}"):
                following = scaled(stage_channels, width)
                x = inverted_residual(b, x, channels, following, expansion, stride if i == 0 else 1)
            channels = following
            block += 1
    last = scaled(1280, max(width, 1.0)) if width >= 1 else scaled(1280, width)
    with b.scope(f"features.{block}.0"):
        x = b.conv(x, channels, last, 1, activation="relu6", norm="folded")
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    b.output("output", b.gemm(x, last, classes, name="classifier.1"), "float32", ("batch", classes))
    return b.model({"batch1": {"batch": 1}, "batch4": {"batch": 4}})
