"""tradewind's models as PyTorch modules, with the same names and shapes of parameters.

make_golden.py makes the dumps of test_golden with them; bench/torch_load.py and bench/gold.py load trained weights into
them. `outputs` are the classes, or the steps of a forecast times its quantiles. A stream is an input [B, T, F]; the
vector, where there is one, is the last input. PyTorch 1.13 and newer.
"""
import torch
import torch.nn as nn


def make_head(joined, head, outputs):
    if not head:
        return nn.Sequential(nn.Linear(joined, outputs))
    return nn.Sequential(nn.Linear(joined, head), nn.ReLU(), nn.Dropout(0.0), nn.Linear(head, outputs))


def make_projection(vector, projection):
    return nn.Sequential(nn.Linear(vector, projection), nn.ReLU(), nn.Dropout(0.0))


class Lstm(nn.Module):
    """A bidirectional LSTM a stream, read at its final states, and a projected vector, into a head.

    `streams` maps a name to (features, hidden).
    """

    def __init__(self, streams, vector=0, projection=0, head=0, outputs=3, layers=1):
        super().__init__()
        self.names = tuple(streams)
        for name, (features, hidden) in streams.items():
            setattr(self, name, nn.LSTM(features, hidden, layers, batch_first=True, bidirectional=True))
        if vector:
            self.strat = make_projection(vector, projection)
        joined = sum(2 * hidden for _, hidden in streams.values()) + (projection if vector else 0)
        self.head = make_head(joined, head, outputs)

    def forward(self, *inputs):
        parts = []
        for name, x in zip(self.names, inputs):
            _, (h, _) = getattr(self, name)(x)
            parts += [h[-2], h[-1]]
        if len(inputs) > len(self.names):
            parts.append(self.strat(inputs[-1]))
        return self.head(torch.cat(parts, 1))


class LstmDeep(nn.Module):
    """Two bidirectional layers with given initial states; the mean of their output over time, projected."""

    def __init__(self, features=6, hidden=7, layers=2, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=layers, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, x, h0, c0):
        y, _ = self.lstm(x, (h0, c0))
        return self.out(y.mean(1))


class Mlp(nn.Module):
    """Over everything that a sample has, laid flat. With dropout, layers are numbered 0, 3, 6 instead of 0, 2, 4."""

    def __init__(self, sizes, activation, dropout=0.0):
        super().__init__()
        layers = []
        for a, b in zip(sizes, sizes[1:-1]):
            layers += [nn.Linear(a, b), activation()] + ([nn.Dropout(dropout)] if dropout else [])
        self.net = nn.Sequential(*layers, nn.Linear(*sizes[-2:]))

    def forward(self, *inputs):
        return self.net(torch.cat([x.flatten(1) for x in inputs], 1))


class Stream(nn.Module):
    """A projection, learned positions and a pre-norm encoder; the mean over its steps, or the last."""

    def __init__(self, steps, features, width, heads, layers, ff, activation, causal, pooling):
        super().__init__()
        self.input = nn.Linear(features, width)
        self.position = nn.Parameter(torch.randn(steps, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, ff, dropout=0.0, activation=activation, batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.causal, self.pooling = causal, pooling

    def forward(self, x):
        later = None
        if self.causal:
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        y = self.encoder(self.input(x) + self.position, mask=later)
        return y.mean(1) if self.pooling == "mean" else y[:, -1]


class Transformer(nn.Module):
    """An encoder a stream, and a projected vector, into a head. `streams` maps a name to (steps, features, width).

    `ff` of 0 is four times a stream's width.
    """

    def __init__(self, streams, heads, layers, ff, activation, causal, pooling, vector=0, projection=0, head=0,
                 outputs=3):
        super().__init__()
        self.names = tuple(streams)
        for name, (steps, features, width) in streams.items():
            setattr(self, name, Stream(steps, features, width, heads, layers, ff or 4 * width, activation, causal,
                                       pooling))
        if vector:
            self.strat = make_projection(vector, projection)
        joined = sum(width for _, _, width in streams.values()) + (projection if vector else 0)
        self.head = make_head(joined, head, outputs)

    def forward(self, *inputs):
        parts = [getattr(self, name)(x) for name, x in zip(self.names, inputs)]
        if len(inputs) > len(self.names):
            parts.append(self.strat(inputs[-1]))
        return self.head(torch.cat(parts, 1))


def trend(degree, steps):
    """[degree + 1, steps]: the powers of i / steps."""
    return (torch.arange(steps).double() / steps) ** torch.arange(degree + 1).double()[:, None]


def seasonality(period, first, steps):
    """[1 + 2 * waves, steps]: 1, then cosines, then sines of 2 pi k i / period, k = 1 .. waves, i from first on."""
    turn = 2 * torch.pi * torch.arange(first, first + steps).double() / period
    waves = torch.arange(1, (period - 1) // 2 + 1).double()[:, None]
    return torch.cat([torch.ones(1, steps).double(), torch.cos(waves * turn), torch.sin(waves * turn)])


class Block(nn.Module):
    def __init__(self, kind, lookback, horizon, width, layers, degree, vector, quantiles):
        super().__init__()
        sizes = [lookback + vector] + [width] * layers
        self.fc = nn.Sequential(*(m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())))
        if kind == "generic":
            self.split, back, fore = lookback, None, None
        elif kind == "trend":
            self.split, back, fore = degree + 1, trend(degree, lookback), trend(degree, horizon)
        else:
            back, fore = seasonality(horizon, -lookback, lookback), seasonality(horizon, 0, horizon)
            self.split = len(fore)
        self.theta = nn.Linear(width, self.split + quantiles * (horizon if kind == "generic" else self.split))
        # The program holds the functions in float32; so does the reference, in both precisions.
        self.register_buffer("back", back.float() if back is not None else None, persistent=False)
        self.register_buffer("fore", fore.float() if fore is not None else None, persistent=False)

    def forward(self, x):
        theta = self.theta(self.fc(x))
        back, fore = theta[:, :self.split], theta[:, self.split:]
        if self.back is None:
            return back, fore
        return back @ self.back, (fore.unflatten(1, (-1, self.split)) @ self.fore).flatten(1)


class NBeats(nn.Module):
    """Blocks over all streams laid flat, `lookback` columns; each sees the vector, of `vector` columns, beside them."""

    def __init__(self, stacks, blocks, lookback, horizon, width, layers, degree=2, head=0, classes=0, vector=0,
                 quantiles=1):
        super().__init__()
        self.blocks = nn.ModuleList(Block(kind, lookback, horizon, width, layers, degree, vector, quantiles)
                                    for kind in stacks for _ in range(blocks))
        if classes:
            self.head = make_head(horizon, head, classes)
        self.classes, self.vector = classes, vector

    def forward(self, *inputs):
        beside = [inputs[-1]] if self.vector else []
        x = torch.cat([s.flatten(1) for s in inputs[:len(inputs) - len(beside)]], 1)
        y = 0
        for block in self.blocks:
            back, fore = block(torch.cat([x] + beside, 1))
            x, y = x - back, y + fore
        return self.head(y) if self.classes else y
