"""Orders of memory in which forward graphs save tensors for their backward graphs."""

import copy
import unittest

import torch
from torch import nn

import fornax.torch
from fornax.torch import orders

CLOSE = {"rtol": 1e-3, "atol": 1e-4}


class Block(nn.Module):
    """Convolutions with strides and without, a shortcut, pooling. It gives a feature map besides."""

    def __init__(self, width=20):
        super().__init__()
        self.first = nn.Conv2d(3, width, 5, stride=2, padding=2)
        self.norm = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.third = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.side = nn.Conv2d(width, 2 * width, 1, stride=2)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, x):
        first = self.pool(torch.relu(self.norm(self.first(x))))
        second = torch.relu(self.second(first) + first)
        last = torch.relu(self.third(second) * torch.sigmoid(self.side(second)))
        return self.head(last.mean((2, 3))), second


def lies_channels_last(tensor):
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


class Orders(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def check(self, x, pack=lambda tensor: tensor, unpack=lambda tensor: tensor, **options):
        """Trains beside eager torch; gives what was saved."""
        torch.manual_seed(4)
        model, reference = Block().train(), Block().train()
        reference.load_state_dict(model.state_dict())
        compiled = torch.compile(model, backend=fornax.torch.Backend(strict=True, **options), fullgraph=True)
        saved = []

        def packed(tensor):
            saved.append(tensor)
            return pack(tensor)

        for _ in range(3):
            saved.clear()
            with torch.autograd.graph.saved_tensors_hooks(packed, unpack):
                ours, map_of_ours = compiled(x)
                expected, map_of_expected = reference(x)
                self.assertEqual(map_of_ours.stride(), map_of_expected.stride())
                torch.testing.assert_close(map_of_ours, map_of_expected, **CLOSE)
                for network, result in ((model, ours), (reference, expected)):
                    network.zero_grad()
                    result.square().sum().backward()
            torch.testing.assert_close(ours, expected, **CLOSE)
            for (name, parameter), other in zip(model.named_parameters(), reference.parameters()):
                torch.testing.assert_close(parameter.grad, other.grad, **CLOSE, msg=lambda text: f"{name}: {text}")
            torch.testing.assert_close(model.norm.running_var, reference.norm.running_var, **CLOSE)
        return saved

    def test_what_is_saved_has_channels_last(self):
        for size in ((2, 3, 31, 27), (3, 3, 40, 24), (1, 3, 9, 8)):
            with self.subTest(size=size):
                torch._dynamo.reset()
                saved = self.check(torch.randn(size), options={"cache": False})
                self.assertTrue(any(map(lies_channels_last, saved)))

    def test_hooks_may_change_the_order(self):
        saved = self.check(torch.randn(2, 3, 21, 30), pack=torch.Tensor.contiguous, options={"cache": False})
        self.assertTrue(any(map(lies_channels_last, saved)))

    def test_inputs_with_channels_last(self):
        x = torch.randn(2, 3, 21, 30).to(memory_format=torch.channels_last)
        self.check(x, options={"cache": False})

    def test_open_sizes(self):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.Sigmoid())
        reference = copy.deepcopy(model)
        compiled = torch.compile(model, backend=fornax.torch.Backend(strict=True, options={"cache": False}), dynamic=True)
        for batch in (2, 5, 3):
            x = torch.randn(batch, 3, 20, 20)
            for network in (compiled, reference):
                network.zero_grad()
                network(x).square().sum().backward()
            for ours, theirs in zip(model.parameters(), reference.parameters()):
                torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)

    def test_a_part_in_torch(self):
        class Random(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.last = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3)

            def forward(self, x):
                return self.last(torch.tanh(self.layer(x)) * torch.rand(()).add(1).sign())

        model, reference = Random(), Random()
        reference.load_state_dict(model.state_dict())
        x = torch.randn(2, 2, 9, 11)
        compiled = torch.compile(model, backend=fornax.torch.Backend(options={"cache": False}))
        for network in (compiled, reference):
            network(x).square().sum().backward()
        for ours, theirs in zip(model.parameters(), reference.parameters()):
            torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)

    def test_strides(self):
        self.assertEqual(orders.strides_of((2, 3, 4, 5), (0, 2, 3, 1)), (60, 1, 15, 3))
        self.assertEqual(orders.inverse((0, 2, 3, 1)), (0, 3, 1, 2))


if __name__ == "__main__":
    unittest.main()
