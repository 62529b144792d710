"""U-Net for segmentation: with transposed convolutions, or with bilinear resizing as the newer ones have it."""

import numpy as np

from tools.models.builder import Builder


def double_conv(b, x, channels_in, channels, norm):
    with b.scope("conv1"):
        x = b.conv(x, channels_in, channels, 3, activation="relu", bias=False, norm=norm)
    with b.scope("conv2"):
        return b.conv(x, channels, channels, 3, activation="relu", bias=False, norm=norm)


def upsample(b, x, channels, mode):
    """Twice the size; half of the channels if the convolution does it."""
    if mode == "transposed":
        # The shape is that of a kernel: inputs, outputs, 2, 2. Each output has one tap per input.
        weight = b.random(b.parameter_name("weight"), (channels, channels // 2, 2, 2)) * (1 / channels) ** 0.5
        bias = 0.1 * b.random(b.parameter_name("bias"), channels // 2)
        return b.op("ConvTranspose", x, b.parameter("weight", weight), b.parameter("bias", bias), dilations=[1, 1],
                    group=1, kernel_shape=[2, 2], pads=[0, 0, 0, 0], strides=[2, 2])
    return b.op("Resize", x, None, np.asarray([1, 1, 2, 2], np.float32), coordinate_transformation_mode="align_corners",
                cubic_coeff_a=-0.75, mode="linear", nearest_mode="floor")


def unet(mode="transposed", features=32, depth=4, image=256, channels_in=3, classes=1, seed=1):
    """`mode` is "transposed" or "resize"; the latter takes images of any size that is divisible by 2^depth."""
    b = Builder(f"unet_{mode}", seed=seed)
    size = (image, image) if mode == "transposed" else ("height", "width")
    x = b.input("input", "float32", ("batch", channels_in, *size), "image 0 1", (3, channels_in, image, image))
    norm = "kept" if mode == "transposed" else "folded"
    skips = []
    channels = channels_in
    for level in range(depth):
        with b.scope(f"encoder{level + 1}"):
            x = double_conv(b, x, channels, features << level, norm)
            skips.append(x)
            channels = features << level
            x = b.op("MaxPool", x, ceil_mode=0, dilations=[1, 1], kernel_shape=[2, 2], pads=[0, 0, 0, 0],
                     strides=[2, 2])
    with b.scope("bottleneck"):
        x = double_conv(b, x, channels, channels * 2, norm)
        channels *= 2
    for level in reversed(range(depth)):
        with b.scope(f"upconv{level + 1}"):
            x = upsample(b, x, channels, mode)
        x = b.concat([x, skips[level]], 1)
        joined = (features << level) + (channels // 2 if mode == "transposed" else channels)
        channels = features << level
        with b.scope(f"decoder{level + 1}"):
            x = double_conv(b, x, joined, channels, norm)
    with b.scope("conv"):
        x = b.conv(x, channels, classes, 1)
    b.output("output", b.op("Sigmoid", x), "float32", ("batch", classes, *size))
    sizes = {"batch1": {"batch": 1, "height": image, "width": image}}
    sizes["batch2"] = {"batch": 2, "height": image // 2, "width": image // 2 + (1 << depth)}
    return b.model(sizes)
