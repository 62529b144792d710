"""EfficientNet-B0 as timm has it: inverted residuals with squeeze-and-excitation and SiLU.

The batch normalisations are kept, as exporters leave them that do not fold.
"""

from tools.models.builder import Builder

# Expansion, channels, blocks, stride, kernel.
STAGES = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
          (6, 320, 1, 1, 3)]


def squeeze_excite(b, x, channels, squeezed):
    with b.scope("se"):
        scale = b.reduce_mean(x, 2, 3)
        with b.scope("conv_reduce"):
            scale = b.conv(scale, channels, squeezed, 1, activation="silu")
        with b.scope("conv_expand"):
            scale = b.conv(scale, squeezed, channels, 1)
        return b.op("Mul", x, b.op("Sigmoid", scale))


def block(b, x, channels_in, channels, expansion, stride, kernel, norm):
    hidden = channels_in * expansion
    y = x
    if expansion != 1:
        with b.scope("conv_pw"):
            y = b.conv(y, channels_in, hidden, 1, activation="silu", norm=norm)
    with b.scope("conv_dw"):
        y = b.conv(y, hidden, hidden, kernel, stride, group=hidden, activation="silu", norm=norm)
    y = squeeze_excite(b, y, hidden, max(1, channels_in // 4))
    with b.scope("conv_pwl"):
        y = b.conv(y, hidden, channels, 1, norm=norm)
    return b.op("Add", y, x) if stride == 1 and channels_in == channels else y


def efficientnet_b0(width=1.0, image=224, classes=1000, norm="kept", seed=1):
    def scaled(channels):
        return max(8, int(channels * width + 4) // 8 * 8)

    b = Builder("efficientnet_b0", seed=seed)
    x = b.input("input", "float32", ("batch", 3, image, image), "image -2 2", (4, 3, image, image))
    channels = scaled(32)
    with b.scope("conv_stem"):
        x = b.conv(x, 3, channels, 3, 2, activation="silu", norm=norm)
    for stage, (expansion, stage_channels, blocks, stride, kernel) in enumerate(STAGES):
        for i in range(blocks):
            with b.scope(f"blocks.{stage}.{i}"):
                following = scaled(stage_channels)
                x = block(b, x, channels, following, expansion, stride if i == 0 else 1, kernel, norm)
            channels = following
    last = scaled(1280)
    with b.scope("conv_head"):
        x = b.conv(x, channels, last, 1, activation="silu", norm=norm)
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    b.output("output", b.gemm(x, last, classes, name="classifier"), "float32", ("batch", classes))
    return b.model({"batch1": {"batch": 1}, "batch4": {"batch": 4}})
