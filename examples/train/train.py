"""A training loop that ends in good order when gangd asks it to.

The handler only sets a flag: the work of a signal handler is done between two
bytecodes of whatever step runs, which is no place to write a file. The loop
looks at the flag after each step, when the state is whole, saves it and leaves.
If a step hangs, an alarm ends the process hard, because a rank that is killed
at the end of the grace has saved nothing either, only later.

    #!/bin/bash
    #GANG --size=2 --time=1:00:00 --signal=USR1@120 --max-retries=3
    exec python3 train.py --steps 1000
"""

import argparse
import json
import os
import signal
import sys
import time

stop = None


def on_signal(number, frame):
    """Remember it, and leave hard if no step comes to its end in time."""
    global stop
    if stop is None:
        stop = signal.Signals(number).name
        signal.setitimer(signal.ITIMER_REAL, max(1.0, seconds_left() - 1.0))


def on_alarm(number, frame):
    print("no step came to its end in time: leaving without a checkpoint", flush=True)
    os._exit(1)


def reason():
    """Why gangd wants us to end, as {"cause": "requeued", "seconds_left": "120.000", ...}."""
    try:
        with open(os.environ.get("GANG_STATUS_FILE", "")) as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f)
    except OSError:
        return {}  # the signal came from somebody else


def seconds_left():
    return float(reason().get("seconds_left", "10"))


def checkpoint_path():
    return os.path.join(os.environ.get("GANG_CHECKPOINT_DIR", "."), "rank%s.json" % os.environ.get("GANG_RANK", "0"))


def load():
    try:
        with open(checkpoint_path()) as f:
            return json.load(f)
    except FileNotFoundError:
        return {"step": 0, "sum": 0}


def save(state):
    """Whole or not at all: a kill in the middle must not cost the checkpoint before."""
    path = checkpoint_path()
    with open(path + ".new", "w") as f:
        json.dump(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)


def step(state, seconds):
    time.sleep(seconds)  # the real work
    state["step"] += 1
    state["sum"] += state["step"]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--steps", type=int, default=1000)
    args.add_argument("--seconds", type=float, default=0.1)
    args.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    args = args.parse_args()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, on_signal)
    signal.signal(signal.SIGALRM, on_alarm)

    state = load()
    print("restart %s begins at step %d" % (os.environ.get("GANG_RESTART_COUNT", "0"), state["step"]), flush=True)
    while state["step"] < args.steps:
        step(state, args.seconds)
        if stop or state["step"] % args.every == 0:
            save(state)
        if stop:
            why = reason()
            print("%s at step %d: %s (%s), %s s left" % (stop, state["step"], why.get("cause"), why.get("text"), why.get("seconds_left")), flush=True)
            sys.exit(0)
    print("done: the sum is %d" % state["sum"], flush=True)


if __name__ == "__main__":
    main()
