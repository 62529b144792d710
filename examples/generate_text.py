"""Trains a small language model on a short text, and lets it write with a cache of keys and values.

    python examples/generate_text.py [PROMPT] [CHARACTERS]

The cache is a buffer of fixed size that each step writes one row of, in place: a token takes the same time wherever
it stands.
"""

import codecs
import contextlib
import io
import sys
import time

import torch
from torch import nn

import fornax.torch

WIDTH, HEADS, LAYERS, POSITIONS = 64, 4, 2, 64


def text_to_learn():
    """The Zen of Python, which every Python has."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, HEADS, POSITIONS, WIDTH // HEADS), persistent=False)

    def forward(self, x, place):
        """Without a place all positions at once; with one the token there, behind those in the cache."""
        batch, count, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, count, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if place is None:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            self.keys.index_copy_(2, place, k)
            self.values.index_copy_(2, place, v)
            seen = torch.arange(POSITIONS) <= place
            y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen[None])
        x = x + self.out(y.transpose(1, 2).reshape(batch, count, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class LanguageModel(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, words)

    def forward(self, tokens, place=None):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1]) if place is None else place)
        for block in self.blocks:
            x = block(x, place)
        return self.head(self.norm(x))


def train(model, tokens, steps=400):
    run = torch.compile(model, backend=fornax.torch.Backend(strict=True), fullgraph=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    slower = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.1, steps)
    for step in range(steps):
        begins = torch.randint(0, len(tokens) - POSITIONS - 1, (8,))
        batch = torch.stack([tokens[i:i + POSITIONS + 1] for i in begins])
        logits = run(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        slower.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}")


def generate(step, tokens, count):
    """The most likely tokens behind others. `step(token, place)` gives logits."""
    tokens = list(tokens)
    with torch.no_grad():
        for place in range(len(tokens) + count - 1):
            logits = step(torch.tensor([[tokens[place]]]), torch.tensor([place]))
            if place + 1 >= len(tokens):
                tokens.append(int(logits[0, -1].argmax()))
    return tokens


def main(prompt="Beautiful is", count=50):
    torch.manual_seed(0)
    text = text_to_learn()
    letters = sorted(set(text))
    tokens = torch.tensor([letters.index(letter) for letter in text])
    model = LanguageModel(len(letters))
    train(model, tokens)

    model.eval()
    given = [letters.index(letter) for letter in prompt]
    backend = fornax.torch.Backend(strict=True)
    step = torch.compile(model, backend=backend, fullgraph=True)
    generate(step, given, 1)  # compiles
    begin = time.perf_counter()
    made = generate(step, given, count)
    seconds = time.perf_counter() - begin
    print("written:", repr("".join(letters[token] for token in made)))
    print(f"{(len(made) - 1) / seconds:.0f} tokens/s, {backend.segments} graph on the device")
    print("the same as eager torch writes:", made == generate(model, given, count))
    # Without a cache all positions are computed for each token.
    with torch.no_grad():
        whole = model(torch.tensor([made[:-1]])).argmax(-1)[0].tolist()
    print("the same as without a cache:", whole[len(given) - 1:] == made[len(given):])


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
