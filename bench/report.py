#!/usr/bin/env python3
"""Makes a page of results from the lines of `tradewind doctor --json` and `tradewind bench --json`.

usage: report.py [--commit ID] [--command TEXT] [--folder DIR] LINES

Writes DIR/DATE-CARD.md, or the first free of DATE-CARD-2.md and so on, and prints its path.
"""
import argparse
import datetime
import json
import pathlib
import re

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")


def read(path):
    """The doctor's line, the ceilings by precision (and "copy"), and the figures by case in the order they came."""
    doctor, ceilings, cases, torch = {}, {}, {}, "not installed"
    for text in path.read_text().splitlines():
        line = json.loads(text)
        torch = line.get("torch", torch)
        if "version" in line:
            doctor = line
        elif line["case"] == "ceilings":
            what = "copy" if "gb_per_s" in line else line["precision"]
            ceilings[what] = line.get("gb_per_s", line.get("tflop_per_s"))
        elif "error" not in line:
            cases.setdefault(line["case"], []).append(line)
    return doctor, ceilings, cases, torch


def ours(lines):
    return {x["precision"]: x for x in lines if x["variant"] == "tradewind"}


def fastest(lines, precision=None):
    """PyTorch's fastest line, of one precision or of all; None where there is none."""
    peers = [x for x in lines if x["variant"] != "tradewind" and precision in (None, x["precision"])]
    return min(peers, key=lambda x: x["ms_per_step"], default=None)


def number(value, digits=3):
    return "" if value is None else f"{value:,.{digits}f}"


def share(value, ceiling):
    return f" ({100 * value / ceiling:.1f} %)" if value is not None and ceiling else ""


def peer(line):
    if not line:
        return ""
    return f"{number(line['ms_per_step'])} ({line['precision']}, {line['variant'].removeprefix('torch_')})"


def ratio(mine, other):
    return number(other["ms_per_step"] / mine["ms_per_step"], 2) if mine and other else ""


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def summary(cases):
    for name, lines in cases.items():
        mine = ours(lines)
        if not mine:
            continue
        best, theirs = min(mine.values(), key=lambda x: x["ms_per_step"]), fastest(lines)
        yield [name, number(best["batch"], 0), f"{number(best['ms_per_step'])} ({best['precision']})",
               number(best["epoch_s"], 4), peer(theirs), ratio(best, theirs),
               ratio(mine.get("fp32"), fastest(lines, "fp32"))]


def details(cases, ceilings):
    for name, lines in cases.items():
        for precision in PRECISIONS:
            mine = ours(lines).get(precision)
            if not mine:
                continue
            flops, moved, theirs = mine.get("tflop_per_s"), mine.get("gb_per_s"), fastest(lines, precision)
            yield [name, number(mine["batch"], 0), precision, number(mine["ms_per_step"]),
                   number(mine["samples_per_s"], 0), number(mine["epoch_s"], 4),
                   number(flops, 2) + share(flops, ceilings.get(precision)),
                   number(moved, 0) + share(moved, ceilings.get("copy")), number(mine["memory_mb"], 0), peer(theirs),
                   ratio(mine, theirs)]


def page(args, doctor, ceilings, cases, torch):
    yield f"# {card(doctor)}, {args.date}"
    yield ""
    yield f"{doctor.get('device', 'unknown device')}. Host: {doctor.get('processor', 'unknown')}, " \
          f"{doctor.get('processors', '?')} processors, {number(doctor.get('memory_gb'), 0)} GB."
    yield f"tradewind {doctor.get('version', '')}, commit {args.commit}; PyTorch {torch}. `{args.command}`: ours and"
    yield "PyTorch in one run, epochs of 343,000 samples with their tail, medians."
    if ceilings:
        yield ""
        products = ", ".join(f"{p} {number(ceilings[p], 0)}" for p in PRECISIONS if p in ceilings)
        yield f"Ceilings of this run, by PyTorch: copy {number(ceilings.get('copy'), 0)} GB/s (1 GiB, read and " \
              f"written); product of 8192 x 8192 in TFLOP/s: {products}."
    yield "\n## Fastest beside fastest\n"
    yield from table(["case", "batch", "ours, ms a step", "an epoch, s", "PyTorch's best, ms a step", "ratio",
                      "fp32 ratio"], summary(cases))
    yield "\n## Every precision\n"
    yield "In brackets the share of the ceiling. TFLOP/s and GB/s are counted as bench/README.md says."
    yield ""
    yield from table(["case", "batch", "precision", "ms a step", "samples/s", "an epoch, s", "TFLOP/s", "GB/s",
                      "memory MB", "PyTorch in it, ms a step", "ratio"], details(cases, ceilings))


def card(doctor):
    """The card's name out of "cuda, NVIDIA H200, sm_90, ..."."""
    parts = doctor.get("device", "").split(", ")
    return parts[1] if len(parts) > 1 else "unknown card"


def free_path(folder, name):
    path, n = folder / f"{name}.md", 1
    while path.exists():
        n += 1
        path = folder / f"{name}-{n}.md"
    return path


def main():
    parser = argparse.ArgumentParser(description="Makes a page of results from the lines of doctor and bench.")
    parser.add_argument("lines", type=pathlib.Path)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--command", default="tradewind bench")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("bench/results"))
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    args = parser.parse_args()
    found = read(args.lines)
    slug = re.sub(r"[^a-z0-9]+", "-", card(found[0]).lower().replace("nvidia", "")).strip("-")
    path = free_path(args.folder, f"{args.date}-{slug}")
    path.write_text("\n".join(page(args, *found)) + "\n")
    print(path)


if __name__ == "__main__":
    main()
