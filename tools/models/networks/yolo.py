"""A detector like YOLOv8: CSP blocks, SPPF, a neck that upsamples and concatenates, box decoding, optionally NMS.

The nano size by default. With `dynamic` the image's size is symbolic and the anchors are computed in the graph.
"""

import numpy as np
from onnx import numpy_helper

from tools.models.builder import Builder

BINS = 16  # of the distribution that a box's side is decoded from


def conv(b, name, x, channels_in, channels, kernel=1, stride=1):
    with b.scope(name):
        return b.conv(x, channels_in, channels, kernel, stride, activation="silu", norm="folded")


def c2f(b, name, x, channels_in, channels, blocks, shortcut):
    """Splits the channels, sends one half through the blocks, and joins what came out of each."""
    half = channels // 2
    with b.scope(name):
        parts = list(b.split(conv(b, "cv1", x, channels_in, channels), [half, half], 1))
        for i in range(blocks):
            with b.scope(f"m.{i}"):
                y = conv(b, "cv2", conv(b, "cv1", parts[-1], half, half, 3), half, half, 3)
                parts.append(b.op("Add", parts[-1], y) if shortcut else y)
        return conv(b, "cv2", b.concat(parts, 1), half * len(parts), channels)


def sppf(b, name, x, channels):
    half = channels // 2
    with b.scope(name):
        parts = [conv(b, "cv1", x, channels, half)]
        for _ in range(3):
            with b.scope("m"):
                parts.append(b.op("MaxPool", parts[-1], ceil_mode=0, dilations=[1, 1], kernel_shape=[5, 5],
                                  pads=[2, 2, 2, 2], strides=[1, 1]))
        return conv(b, "cv2", b.concat(parts, 1), half * 4, channels)


def doubled(b, name, x):
    with b.scope(name):
        return b.op("Resize", x, None, np.asarray([1, 1, 2, 2], np.float32), mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75)


def computed_anchors(b, maps, strides):
    """Centres [2, anchors] and strides [1, anchors] of all cells, from the shapes of the feature maps."""
    centres, steps = [], []
    for x, stride in zip(maps, strides):
        height, width = b.size_of(x, 2), b.size_of(x, 3)
        shape = b.shape_of(height, width)
        axes = []
        for length, axis in ((width, 0), (height, 1)):
            line = b.cast(b.op("Range", b.constant(np.int64(0)), length, b.constant(np.int64(1))), np.float32)
            line = b.unsqueeze(b.op("Add", line, 0.5), axis)
            axes.append(b.reshape(b.op("Expand", line, shape), 1, -1))
        centres.append(b.concat(axes, 0))
        count = b.unsqueeze(b.op("Mul", height, width), 0)
        filled = b.op("ConstantOfShape", count, value=numpy_helper.from_array(np.asarray([stride], np.float32)))
        steps.append(b.unsqueeze(filled, 0))
    return b.concat(centres, 1), b.concat(steps, 1)


def fixed_anchors(image, strides):
    centres, steps = [], []
    for stride in strides:
        line = np.arange(image // stride, dtype=np.float32) + np.float32(0.5)
        y, x = np.meshgrid(line, line, indexing="ij")
        centres.append(np.stack([x.ravel(), y.ravel()]))
        steps.append(np.full((1, x.size), stride, np.float32))
    return np.concatenate(centres, 1), np.concatenate(steps, 1)


def head(b, maps, channels, classes, strides, image, dynamic):
    """Boxes [batch, 4, anchors] as centre and size in pixels, and scores [batch, classes, anchors]."""
    with b.scope("model.22"):
        box_width, class_width = max(16, channels[0] // 4, 4 * BINS), max(channels[0], min(classes, 100))
        rows = []
        for i, (x, width) in enumerate(zip(maps, channels)):
            ends = []
            for branch, hidden, results in (("cv2", box_width, 4 * BINS), ("cv3", class_width, classes)):
                y = conv(b, f"{branch}.{i}.0", x, width, hidden, 3)
                y = conv(b, f"{branch}.{i}.1", y, hidden, hidden, 3)
                with b.scope(f"{branch}.{i}.2"):
                    ends.append(b.conv(y, hidden, results, 1, gain=2.0 if branch == "cv2" else 0.7))
            y = b.concat(ends, 1)
            rows.append(b.reshape(y, b.size_of(y, 0), 4 * BINS + classes, -1))
        b.end_fitting()
        box, scores = b.split(b.concat(rows, 2), [4 * BINS, classes], 1)
        with b.scope("dfl"):
            # Each side is the mean of a distribution over the bins.
            y = b.reshape(box, b.size_of(box, 0), 4, BINS, b.size_of(box, 2))
            y = b.op("Softmax", b.transpose(y, 0, 2, 1, 3), axis=1)
            with b.scope("conv"):
                bins = b.parameter("weight", np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
                y = b.op("Conv", y, bins, dilations=[1, 1], group=1, kernel_shape=[1, 1], pads=[0, 0, 0, 0],
                         strides=[1, 1])
            y = b.reshape(y, b.size_of(y, 0), 4, b.size_of(y, 3))
        if dynamic:
            centres, steps = computed_anchors(b, maps, strides)
        else:
            centres, steps = map(b.constant, fixed_anchors(image, strides))
        centres = b.unsqueeze(centres, 0)
        low = b.op("Sub", centres, b.slice(y, 0, 2, 1))
        high = b.op("Add", centres, b.slice(y, 2, 4, 1))
        middle = b.op("Div", b.op("Add", low, high), 2.0)
        boxes = b.op("Mul", b.concat([middle, b.op("Sub", high, low)], 1), steps)
        return boxes, b.op("Sigmoid", scores)


def suppress(b, boxes, scores):
    """The boxes that are left after NonMaxSuppression: [found, 4], their scores and classes."""
    found = b.op("NonMaxSuppression", b.transpose(boxes, 0, 2, 1), scores, np.asarray([100], np.int64),
                 np.asarray([0.5], np.float32), np.asarray([0.9], np.float32), center_point_box=1)
    batch_and_anchor = b.op("Gather", found, [0, 2], axis=1)
    kept = b.op("GatherND", b.transpose(boxes, 0, 2, 1), batch_and_anchor)
    return kept, b.op("GatherND", scores, found), b.op("Gather", found, 1, axis=1)


def yolov8(width=0.25, depth=1 / 3, image=640, classes=80, dynamic=False, nms=False, seed=1):
    b = Builder("yolov8", seed=seed)
    size = ("height", "width") if dynamic else (image, image)
    x = b.input("images", "float32", ("batch", 3, *size), "image 0 1", (3, 3, image, image))
    c = [max(8, int(channels * width)) for channels in (64, 128, 256, 512, 1024)]
    three, six = max(1, round(3 * depth)), max(1, round(6 * depth))

    x = conv(b, "model.0", x, 3, c[0], 3, 2)
    x = conv(b, "model.1", x, c[0], c[1], 3, 2)
    x = c2f(b, "model.2", x, c[1], c[1], three, True)
    x = conv(b, "model.3", x, c[1], c[2], 3, 2)
    p3 = x = c2f(b, "model.4", x, c[2], c[2], six, True)
    x = conv(b, "model.5", x, c[2], c[3], 3, 2)
    p4 = x = c2f(b, "model.6", x, c[3], c[3], six, True)
    x = conv(b, "model.7", x, c[3], c[4], 3, 2)
    x = c2f(b, "model.8", x, c[4], c[4], three, True)
    p5 = sppf(b, "model.9", x, c[4])

    x = b.concat([doubled(b, "model.10", p5), p4], 1)
    n4 = c2f(b, "model.12", x, c[4] + c[3], c[3], three, False)
    x = b.concat([doubled(b, "model.13", n4), p3], 1)
    out3 = c2f(b, "model.15", x, c[3] + c[2], c[2], three, False)
    x = b.concat([conv(b, "model.16", out3, c[2], c[2], 3, 2), n4], 1)
    out4 = c2f(b, "model.18", x, c[2] + c[3], c[3], three, False)
    x = b.concat([conv(b, "model.19", out4, c[3], c[3], 3, 2), p5], 1)
    out5 = c2f(b, "model.21", x, c[3] + c[4], c[4], three, False)

    boxes, scores = head(b, [out3, out4, out5], c[2:], classes, (8, 16, 32), image, dynamic)
    if nms:
        kept, scores, labels = suppress(b, boxes, scores)
        b.output("boxes", kept, "float32", ("found", 4))
        b.output("scores", scores, "float32", ("found",))
        b.output("labels", labels, "int64", ("found",))
    else:
        b.output("output0", b.concat([boxes, scores], 1), "float32", ("batch", 4 + classes, "anchors"))
    sizes = {"batch1": {"batch": 1, "height": image, "width": image}}
    sizes["batch2"] = {"batch": 2, "height": image // 2, "width": image // 2 + 32}
    return b.model(sizes)
