"""Fine-tunes a small network for digits that it has not seen: forward and backward on the device, the optimiser in torch.

    python examples/finetune.py

The pictures are those beside models/digits.onnx, as ONNX tensors, which the package onnx reads.
"""

import pathlib

import onnx
import torch
from onnx import numpy_helper
from torch import nn

import fornax.torch

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
BATCH = 25


def tensor_of(name):
    return torch.from_numpy(numpy_helper.to_array(onnx.load_tensor(str(MODELS / name))).copy())


def make_model():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 4 * 4, 10))


def train(model, run, parameters, images, labels, epochs, rate, name=None):
    """Losses of each epoch."""
    optimiser = torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        total = 0.0
        batches = order[:len(order) // BATCH * BATCH].split(BATCH)
        for batch in batches:
            loss = nn.functional.cross_entropy(run(images[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
        losses.append(total / len(batches))
        if name is not None:
            print(f"{name}, epoch {epoch + 1}: loss {losses[-1]:.4f}")
    return losses


def accuracy(run, images, labels):
    with torch.no_grad():
        return 100 * (run(images).argmax(1) == labels).float().mean().item()


def finetuned(state, compile_model, images, labels, test_images, test_labels, name=None):
    """The network with its first layers fixed and the others trained further: losses, and accuracy of new pictures."""
    model = make_model()
    model.load_state_dict(state)
    model[0].requires_grad_(False)
    run = compile_model(model)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    losses = train(model, run, parameters, images, labels, epochs=8, rate=0.02, name=name)
    return losses, accuracy(run, test_images, test_labels)


def main():
    images, labels = tensor_of("digits_test_images.pb"), tensor_of("digits_test_labels.pb").reshape(-1).long()
    images, test_images, labels, test_labels = images[:300], images[300:], labels[:300], labels[300:]

    # What somebody else has trained: the digits 0 to 4.
    torch.manual_seed(0)
    model = make_model()
    known = labels < 5
    train(model, model, model.parameters(), images[known], labels[known], epochs=8, rate=0.02)
    print(f"before: {accuracy(model, test_images, test_labels):.1f} % of all digits are right, "
          f"{accuracy(model, test_images[test_labels < 5], test_labels[test_labels < 5]):.1f} % of 0 to 4")

    backend = fornax.torch.Backend(strict=True)
    data = images, labels, test_images, test_labels
    ours, right = finetuned(model.state_dict(), lambda made: torch.compile(made, backend=backend, fullgraph=True), *data,
                            name="fornax")
    theirs, _ = finetuned(model.state_dict(), lambda made: made, *data)
    print(f"after: {right:.1f} % of all digits are right")
    print(f"greatest difference from eager torch's losses: {max(abs(a - b) for a, b in zip(ours, theirs)):.1e}")
    print(f"graphs on the device: {backend.segments}, in torch: {len(backend.fallbacks)}")


if __name__ == "__main__":
    main()
