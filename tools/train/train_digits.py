"""Trains the digit classifier that the main job runs, and writes it with its test split into models/.

The data are the 1,797 UCI handwritten digits (8 x 8 grey values from 0 to 16) that scikit-learn carries. A
quarter of them, stratified by digit, is never trained on; it becomes the test split. The network is

    image [N,1,8,8] -> conv 3x3, 16 -> relu -> conv 3x3, 32 -> relu -> max-pool 2x2
                    -> reshape [N,512] -> matmul + bias, 64 -> relu -> matmul + bias, 10 -> softmax

Everything is seeded. NumPy does the arithmetic: convolutions are matrix multiplies over unfolded windows, so
forward and backward passes are a few lines each. Run it from the project's root:

    tools/setup/python.sh
    .venv/bin/python3 tools/train/train_digits.py --output models

Writes digits.onnx (the batch is a symbolic dimension, N), digits_test_images.pb (float [450,1,8,8]) and
digits_test_labels.pb (int64 [450]); the two .pb files are ONNX TensorProto messages, the form that ONNX uses
for the inputs and outputs of its own test data.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
EPOCHS = 40
BATCH = 32
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-4
OPSET = 13


def load_split():
    """Returns training images and labels, then test images and labels; images are [N,1,8,8] in [0,1]."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=450, stratify=labels, random_state=SEED
    )
    return train_x, train_y, test_x, test_y


def shift_randomly(images, rng):
    """Moves each image by at most one pixel in each direction and fills with black."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = rng.integers(0, 3, (2, len(images)))
    return np.stack(
        [padded[i, :, r : r + 8, c : c + 8] for i, (r, c) in enumerate(zip(rows, columns))]
    )


def unfold3x3(x):
    """[N,C,H,W] -> [N,H,W,C*9]: the 3x3 window around every pixel, zero beyond the border."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def fold3x3(columns, channels):
    """The transpose of unfold3x3: adds every window's values back where they came from."""
    n, h, w, _ = columns.shape
    windows = columns.reshape(n, h, w, channels, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    padded = np.zeros((n, channels, h + 2, w + 2), np.float32)
    for row in range(3):
        for column in range(3):
            padded[:, :, row : row + h, column : column + w] += windows[:, :, row, column]
    return padded[:, :, 1:-1, 1:-1]


def max_pool2x2(x):
    """Returns the pooled [N,C,H/2,W/2] and the mask of the elements that won."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    pooled = blocks.max(axis=(3, 5))
    mask = blocks == pooled[:, :, :, None, :, None]
    return pooled, mask / mask.sum(axis=(3, 5), keepdims=True)


def conv(x, weight, bias):
    columns = unfold3x3(x)
    y = columns @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2), columns


def conv_gradients(dy, columns, weight):
    dy = dy.transpose(0, 2, 3, 1)
    flat = dy.reshape(-1, dy.shape[-1])
    dweight = (flat.T @ columns.reshape(len(flat), -1)).reshape(weight.shape)
    dx = fold3x3(dy @ weight.reshape(len(weight), -1), weight.shape[1])
    return dx, dweight, flat.sum(axis=0)


def initial_parameters(rng):
    def he(shape, fan_in):
        return (rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)

    return {
        "conv1.weight": he((16, 1, 3, 3), 9),
        "conv1.bias": np.zeros(16, np.float32),
        "conv2.weight": he((32, 16, 3, 3), 144),
        "conv2.bias": np.zeros(32, np.float32),
        "dense1.weight": he((512, 64), 512),
        "dense1.bias": np.zeros(64, np.float32),
        "dense2.weight": he((64, 10), 64),
        "dense2.bias": np.zeros(10, np.float32),
    }


def forward(p, x):
    """Returns the class probabilities and what the backward pass needs."""
    a1, columns1 = conv(x, p["conv1.weight"], p["conv1.bias"])
    r1 = np.maximum(a1, 0)
    a2, columns2 = conv(r1, p["conv2.weight"], p["conv2.bias"])
    r2 = np.maximum(a2, 0)
    pooled, winners = max_pool2x2(r2)
    flat = pooled.reshape(len(x), -1)
    r3 = np.maximum(flat @ p["dense1.weight"] + p["dense1.bias"], 0)
    logits = r3 @ p["dense2.weight"] + p["dense2.bias"]
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponents / exponents.sum(axis=1, keepdims=True)
    return probabilities, (columns1, r1, columns2, r2, pooled, winners, flat, r3)


def backward(p, probabilities, saved, labels):
    """Returns the gradient of the mean cross-entropy for every parameter."""
    columns1, r1, columns2, r2, pooled, winners, flat, r3 = saved
    g = {}
    d = probabilities.copy()
    d[np.arange(len(labels)), labels] -= 1
    d /= len(labels)
    g["dense2.weight"], g["dense2.bias"] = r3.T @ d, d.sum(axis=0)
    d = (d @ p["dense2.weight"].T) * (r3 > 0)
    g["dense1.weight"], g["dense1.bias"] = flat.T @ d, d.sum(axis=0)
    d = (d @ p["dense1.weight"].T).reshape(pooled.shape)
    d = (winners * d[:, :, :, None, :, None]).reshape(r2.shape).astype(np.float32) * (r2 > 0)
    d, g["conv2.weight"], g["conv2.bias"] = conv_gradients(d, columns2, p["conv2.weight"])
    _, g["conv1.weight"], g["conv1.bias"] = conv_gradients(d * (r1 > 0), columns1, p["conv1.weight"])
    return g


def train(train_x, train_y):
    """Adam with decoupled weight decay and a cosine learning rate."""
    rng = np.random.default_rng(SEED)
    p = initial_parameters(rng)
    first = {name: np.zeros_like(value) for name, value in p.items()}
    second = {name: np.zeros_like(value) for name, value in p.items()}
    steps = EPOCHS * (len(train_x) // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(train_x))
        losses = []
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            probabilities, saved = forward(p, shift_randomly(train_x[chosen], rng))
            labels = train_y[chosen]
            losses.append(-np.log(probabilities[np.arange(BATCH), labels] + 1e-9).mean())
            gradients = backward(p, probabilities, saved, labels)
            step += 1
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, gradient in gradients.items():
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient * gradient
                mean = first[name] / (1 - 0.9**step)
                variance = second[name] / (1 - 0.999**step)
                decay = WEIGHT_DECAY * p[name] if name.endswith("weight") else 0
                p[name] = (p[name] - rate * (mean / (np.sqrt(variance) + 1e-8) + decay)).astype(np.float32)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3}: mean training loss {np.mean(losses):.4f}", flush=True)
    return p


def build_model(p):
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "conv1",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("Conv", ["relu1", "conv2.weight", "conv2.bias"], ["conv2"], "conv2",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["pool", "flat.shape"], ["flat"], "flatten"),
        helper.make_node("MatMul", ["flat", "dense1.weight"], ["dense1.product"], "dense1"),
        helper.make_node("Add", ["dense1.product", "dense1.bias"], ["dense1"], "dense1.add"),
        helper.make_node("Relu", ["dense1"], ["relu3"], "relu3"),
        helper.make_node("MatMul", ["relu3", "dense2.weight"], ["dense2.product"], "dense2"),
        helper.make_node("Add", ["dense2.product", "dense2.bias"], ["logits"], "dense2.add"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], "softmax", axis=-1),
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in p.items()]
    constants.append(numpy_helper.from_array(np.array([-1, 512], np.int64), "flat.shape"))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        constants,
    )
    model = helper.make_model(graph, producer_name="fornax-train-digits",
                              opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("models"))
    output = parser.parse_args().output
    train_x, train_y, test_x, test_y = load_split()
    p = train(train_x, train_y)
    right = (forward(p, test_x)[0].argmax(axis=1) == test_y).sum()
    print(f"test split: {right} of {len(test_y)} right, {100 * right / len(test_y):.2f} %")
    output.mkdir(parents=True, exist_ok=True)
    messages = {
        "digits.onnx": build_model(p),
        "digits_test_images.pb": numpy_helper.from_array(test_x, "image"),
        "digits_test_labels.pb": numpy_helper.from_array(test_y, "labels"),
    }
    for name, message in messages.items():
        data = message.SerializeToString()
        (output / name).write_bytes(data)
        print(f"wrote {output / name}, {len(data):,} bytes")


if __name__ == "__main__":
    main()
