"""The command line of the scripts that make dumps: SCRIPT DIRECTORY [CASE...]."""
import pathlib
import sys

import torch


def run(cases, make):
    """Calls make(case, directory) for the cases that are named, or for all; returns the exit status."""
    wanted = sys.argv[2:] or [case.name for case in cases]
    unknown = set(wanted) - {case.name for case in cases}
    if len(sys.argv) < 2 or unknown:
        what = f"no case {', '.join(sorted(unknown))}" if unknown else "the directory to write to is needed"
        print(f"{pathlib.Path(sys.argv[0]).name}: {what}", file=sys.stderr)
        return 2
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for case in cases:
        if case.name in wanted:
            make(case, directory)
    return 0
