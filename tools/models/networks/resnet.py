"""ResNet-50 as torchvision has it: bottlenecks of three convolutions, the stride in the second."""

from tools.models.builder import Builder


def bottleneck(b, x, channels_in, width, stride):
    channels = 4 * width
    with b.scope("conv1"):
        y = b.conv(x, channels_in, width, 1, activation="relu", norm="folded")
    with b.scope("conv2"):
        y = b.conv(y, width, width, 3, stride, activation="relu", norm="folded")
    with b.scope("conv3"):
        y = b.conv(y, width, channels, 1, gain=0.5, norm="folded")
    if stride != 1 or channels_in != channels:
        with b.scope("downsample.0"):
            x = b.conv(x, channels_in, channels, 1, stride, norm="folded")
    return b.activation(b.op("Add", y, x), "relu")


def resnet50(width=64, blocks=(3, 4, 6, 3), image=224, classes=1000, seed=1):
    b = Builder("resnet50", seed=seed)
    x = b.input("input", "float32", ("batch", 3, image, image), "image -2 2", (4, 3, image, image))
    with b.scope("conv1"):
        x = b.conv(x, 3, width, 7, 2, activation="relu", norm="folded")
    with b.scope("maxpool"):
        x = b.op("MaxPool", x, ceil_mode=0, dilations=[1, 1], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    channels = width
    for stage, count in enumerate(blocks):
        for i in range(count):
            with b.scope(f"layer{stage + 1}.{i}"):
                x = bottleneck(b, x, channels, width << stage, 2 if stage and i == 0 else 1)
            channels = 4 * (width << stage)
    with b.scope("avgpool"):
        x = b.op("GlobalAveragePool", x)
    x = b.op("Flatten", x, axis=1)
    b.output("output", b.gemm(x, channels, classes, name="fc"), "float32", ("batch", classes))
    return b.model({"batch1": {"batch": 1}, "batch4": {"batch": 4}})
