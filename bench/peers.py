#!/usr/bin/env python3
"""The PyTorch side of `tradewind bench`: the same training step, timed, one JSON line for each variant.

usage: peers.py [--device cpu|cuda|cuda:N] [--threads N] [--batch B] [--steps N] [--warmup N] [--precision P] [--compile]
                [--way eager|graph|compiled] [--hidden H] [--window T] [--layers L] CASE

CASE is lstm, mlp, nbeats, transformer or ceilings. --hidden, --window and --layers change the lstm: H units in the
fast stream and half as many in the slow one, windows of T bars in the fast stream, L layers. `ceilings` times no model:
it gives what the card reaches in one large product (tflop_per_s, by precision) and one large copy (gb_per_s).

A timed step is everything that a training step does: shuffle, gather of the rows from a set resident on the device, forward
with dropout, loss, backward, clipping of the gradient norm at 1, fused AdamW, the running sum of the loss. The
data are random. Figures are medians over the steps after warm-up.

Variants: torch_eager; on cuda also torch_graph (the whole step as one CUDA graph) and torch_compiled (torch.compile
inside that graph); on the cpu torch_compiled with --compile. A variant that fails gives a line with "error"; where
--way names one and it fails, torch_eager stands in.
memory_mb (2^20 bytes) is the process's peak resident size on the cpu and PyTorch's peak allocation on cuda; the
latter leaves the CUDA context out.

Exit status: 0 some variant was timed, 1 none was or PyTorch is missing, 2 the arguments are wrong.
"""
import argparse
import json
import re
import resource
import statistics
import sys
import time
from typing import Callable, NamedTuple

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as e:
    sys.exit(f"peers.py: PyTorch cannot be imported ({e}); install it, or bench without it")

CUDA_ROWS = 343_000     # the training part of the reference job; on the cpu four batches stand for it


class Lstm(nn.Module):
    def __init__(self, hidden=32, layers=1, dropout=0.3):
        super().__init__()
        slow = hidden // 2
        between = dropout if layers > 1 else 0.0
        self.fast = nn.LSTM(15, hidden, layers, batch_first=True, bidirectional=True, dropout=between)
        self.slow = nn.LSTM(8, slow, layers, batch_first=True, bidirectional=True, dropout=between)
        self.strat = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Sequential(nn.Linear(2 * (hidden + slow) + 32, 64), nn.ReLU(), nn.Dropout(dropout),
                                  nn.Linear(64, 3))

    def forward(self, fast, slow, vector):
        _, (hf, _) = self.fast(fast)
        _, (hs, _) = self.slow(slow)
        return self.head(torch.cat([hf[-2], hf[-1], hs[-2], hs[-1], self.strat(vector)], 1))


class Mlp(nn.Module):
    def __init__(self, sizes=(64, 512, 256, 3)):
        super().__init__()
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.net(x)


class NBeatsBlock(nn.Module):
    def __init__(self, lookback, horizon, width, layers=4):
        super().__init__()
        stack, n = [], lookback
        for _ in range(layers):
            stack += [nn.Linear(n, width), nn.ReLU()]
            n = width
        self.fc = nn.Sequential(*stack)
        self.theta = nn.Linear(width, lookback + horizon)
        self.lookback = lookback

    def forward(self, x):
        theta = self.theta(self.fc(x))
        return theta[:, :self.lookback], theta[:, self.lookback:]


class NBeats(nn.Module):
    def __init__(self, lookback=60, horizon=12, blocks=30, width=512):
        super().__init__()
        self.blocks = nn.ModuleList(NBeatsBlock(lookback, horizon, width) for _ in range(blocks))

    def forward(self, x):
        forecast = 0
        for block in self.blocks:
            back, ahead = block(x)
            x = x - back
            forecast = forecast + ahead
        return forecast


class Transformer(nn.Module):
    def __init__(self, features=15, d=128, heads=8, layers=3, ff=512, classes=3, window=50, dropout=0.1):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, heads, ff, dropout, "gelu", batch_first=True, norm_first=True)
        self.inp = nn.Linear(features, d)
        self.pos = nn.Parameter(torch.randn(window, d) * 0.02)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(d, classes)

    def forward(self, x):
        return self.out(self.enc(self.inp(x) + self.pos).mean(1))


class Case(NamedTuple):
    model: Callable
    inputs: tuple           # shape of one row of each input
    target: int             # width of a real-valued target; 0: one of three classes
    loss: Callable
    batch: int
    precisions: tuple       # on cuda; the cpu runs fp32
    ways: tuple             # on cuda


WAYS = ("eager", "graph", "compiled")
CASES = {
    # torch.compile leaves nn.LSTM as it is, so that a compiled variant would time the same kernels again
    "lstm": Case(Lstm, ((50, 15), (20, 8), (64,)), 0, F.cross_entropy, 3072, ("fp32", "tf32", "bf16", "fp16"),
                 ("eager", "graph")),
    "mlp": Case(Mlp, ((64,),), 0, F.cross_entropy, 512, ("fp32", "tf32", "bf16"), WAYS),
    "nbeats": Case(NBeats, ((60,),), 12, F.l1_loss, 1024, ("fp32", "tf32", "bf16"), WAYS),
    "transformer": Case(Transformer, ((50, 15),), 0, F.cross_entropy, 3072, ("fp32", "tf32", "bf16"), WAYS),
}


class Rows:
    """A random set on the device and a shuffled order; the position is there too, so that a graph can move it."""

    def __init__(self, case, batch, device):
        self.count = 4 * batch if device == "cpu" else max(CUDA_ROWS, batch)
        self.steps_per_epoch = self.count // batch
        self.inputs = [torch.randn(self.count, *shape, device=device) for shape in case.inputs]
        self.target = (torch.randn(self.count, case.target, device=device) if case.target
                       else torch.randint(0, 3, (self.count,), device=device))
        self.order = torch.randperm(self.count, device=device)
        self.offsets = torch.arange(batch, device=device)
        self.at = torch.zeros((), dtype=torch.long, device=device)

    def shuffle(self):
        self.order.copy_(torch.randperm(self.count, device=self.order.device))
        self.at.zero_()

    def next(self):
        rows = self.order.index_select(0, (self.at + self.offsets) % self.count)
        self.at.add_(len(self.offsets))
        return [x.index_select(0, rows) for x in self.inputs], self.target.index_select(0, rows)


def make_step(case, rows, precision, way, device):
    """A function that runs one training step, and the number of parameters it trains."""
    model = case.model().to(device)
    params = list(model.parameters())
    net = torch.compile(model) if way == "compiled" else model
    graph = device == "cuda" and way != "eager"
    optimizer = torch.optim.AdamW(params, lr=1e-3, weight_decay=0.01, fused=True, capturable=graph)
    total = torch.zeros((), device=device)
    # fp16 goes without a loss scale: the figures are times, and so much the better for PyTorch
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)

    def step():
        inputs, target = rows.next()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, low or torch.bfloat16, enabled=low is not None):
            loss = case.loss(net(*inputs), target)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        total.add_(loss.detach())

    return (capture(step) if graph else step), sum(p.numel() for p in params)


def capture(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay():
        graph.replay()

    replay.keeps = step     # the graph works on tensors that only step's closure owns
    return replay


def median_ms(step, rows, device, steps, warmup):
    """Steps follow one another without waiting for the host, as in training; each is timed from the end of the last."""
    mark = cuda_mark if device == "cuda" else time.perf_counter
    marks = []
    for i in range(warmup + steps):
        if i == warmup and device == "cuda":
            torch.cuda.synchronize()
        if i >= warmup:
            marks.append(mark())
        if i % rows.steps_per_epoch == 0:
            rows.shuffle()
        step()
    marks.append(mark())
    if device == "cuda":
        torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))
    return statistics.median(b - a for a, b in zip(marks, marks[1:])) * 1e3


def cuda_mark():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def shaped(case, args):
    """The lstm with other sizes."""
    hidden, layers = args.hidden or 32, args.layers or 1
    return case._replace(model=lambda: Lstm(hidden, layers), inputs=((args.window or 50, 15), (20, 8), (64,)))


def median_of(run, repeats=10, warmup=3):
    """Milliseconds of one run on the card."""
    times = []
    for i in range(warmup + repeats):
        a = cuda_mark()
        run()
        b = cuda_mark()
        b.synchronize()
        if i >= warmup:
            times.append(a.elapsed_time(b))
    return statistics.median(times)


def ceilings():
    """Yields a line for a copy of 1 GiB and for a product of 8192 x 8192 in each precision."""
    x = torch.empty(2**28, device="cuda")
    y = torch.empty_like(x)
    line = dict(case="ceilings", device="cuda", torch=str(torch.__version__))
    yield line | dict(variant="torch_copy", precision="fp32",
                      gb_per_s=2 * x.numel() * 4 / median_of(lambda: y.copy_(x)) / 1e6)
    del x, y
    n = 8192
    for precision, dtype in (("fp32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16),
                             ("fp16", torch.float16)):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
        yield line | dict(variant="torch_matmul", precision=precision,
                          tflop_per_s=2 * n**3 / median_of(lambda: torch.mm(a, b)) / 1e9)


def measure(args, case, precision, way):
    """One variant; returns the figures of its line."""
    torch.manual_seed(1)
    if way == "compiled":
        torch.compiler.reset()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    if args.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    rows = Rows(case, args.batch, args.device)
    step, params = make_step(case, rows, precision, way, args.device)
    ms = median_ms(step, rows, args.device, args.steps, args.warmup)
    memory = (torch.cuda.max_memory_allocated() if args.device == "cuda"
              else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return dict(ms_per_step=ms, samples_per_s=args.batch / ms * 1e3, memory_mb=memory / 2**20, params=params)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"peers.py: {message}; see --help\n")


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def device(text):
    if not re.fullmatch("cpu|cuda(:[0-9]+)?", text):
        raise ValueError
    return text


def parse():
    parser = Parser(description="Times PyTorch's training step on the cases of tradewind bench; prints JSON lines.")
    parser.add_argument("case", metavar="CASE", choices=[*CASES, "ceilings"],
                        help=", ".join([*CASES, "ceilings"]))
    parser.add_argument("--device", type=device, default="cpu", help="cpu, cuda, or cuda:N for a card by its number")
    parser.add_argument("--threads", type=positive, help="threads of the cpu (PyTorch's own choice)")
    parser.add_argument("--batch", type=positive, help="rows a step (3072; mlp 512, nbeats 1024)")
    parser.add_argument("--steps", type=positive, help="timed steps (8 on cpu, 100 on cuda)")
    parser.add_argument("--warmup", type=positive, help="steps before these (2 on cpu, 10 on cuda)")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), help="only this one (all; cpu: fp32)")
    parser.add_argument("--compile", action="store_true", help="on the cpu, time torch.compile as well")
    parser.add_argument("--way", choices=WAYS, help="on cuda, only this one (all that the case has)")
    parser.add_argument("--hidden", type=positive, help="lstm: units of the fast stream (32)")
    parser.add_argument("--window", type=positive, help="lstm: bars in the fast stream's window (50)")
    parser.add_argument("--layers", type=positive, help="lstm: layers (1)")
    args = parser.parse_args()
    args.device, _, number = args.device.partition(":")
    cuda = args.device == "cuda"
    if cuda and not torch.cuda.is_available():
        parser.error("PyTorch sees no CUDA device; use --device cpu")
    if number:
        torch.cuda.set_device(int(number))  # what is only "cuda" from here on
    if args.case == "ceilings":
        if not cuda:
            parser.error("ceilings are measured on cuda")
        return args
    if args.case != "lstm" and (args.hidden or args.window or args.layers):
        parser.error("--hidden, --window and --layers are for the lstm")
    if args.way and not cuda:
        parser.error("--way is for cuda")
    case = CASES[args.case]
    args.shape = shaped(case, args) if args.case == "lstm" else case
    args.precisions = case.precisions if cuda else ("fp32",)
    if args.precision and args.precision not in args.precisions:
        parser.error(f"{args.case} on {args.device} has no {args.precision}; it has {', '.join(args.precisions)}")
    args.precisions = (args.precision,) if args.precision else args.precisions
    args.ways = case.ways if cuda else ("eager", "compiled") if args.compile else ("eager",)
    args.ways = (args.way,) if args.way else args.ways
    args.batch = args.batch or case.batch
    args.steps = args.steps or (100 if cuda else 8)
    args.warmup = args.warmup or (10 if cuda else 2)
    return args


def try_variant(args, precision, way):
    """Prints the variant's line; tells whether it was timed."""
    line = dict(case=args.case, variant="torch_" + way, device=args.device, precision=precision,
                batch=args.batch, threads=torch.get_num_threads(), torch=str(torch.__version__))
    try:
        line |= measure(args, args.shape, precision, way)
    except Exception as e:      # whatever PyTorch throws, the other variants are still worth timing
        line["error"] = f"{type(e).__name__}: {e}".strip().splitlines()[0][:200]
    print(json.dumps(line), flush=True)
    return "error" not in line


def main():
    args = parse()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    if args.case == "ceilings":
        for line in ceilings():
            print(json.dumps(line), flush=True)
        return 0
    timed = 0
    for precision in args.precisions:
        for way in args.ways:
            fine = try_variant(args, precision, way)
            if not fine and args.way and way != "eager":
                fine = try_variant(args, precision, "eager")
            timed += fine
    return 0 if timed else 1


if __name__ == "__main__":
    sys.exit(main())
