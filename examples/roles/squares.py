"""A coordinator hands out pieces of work, workers do them.

    #!/bin/bash
    #GANG --role=coordinator:1,ends=gang
    #GANG --role=worker:3,gpus-per-rank=1
    #GANG --ready-timeout=1m --max-retries=2
    exec python3 squares.py --upto 1000

All ranks start together. The coordinator says READY=1 when it listens; workers
wait for that with gbarrier, so that it does not matter who is faster. When the
coordinator has all results it ends with 0, and as its role says ends=gang the
job is done: the workers, which would wait for more work for ever, are stopped.

The coordinator alone knows how far the work is, so that it alone saves: into a
file of GANG_CHECKPOINT_DIR, which stays the same when the job starts again.
"""

import argparse
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time


def say(text):
    """sd_notify: one datagram to the socket that gangd gave this rank."""
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(text.encode(), path)


class Work:
    """What is to be done, what is done, and where that is kept."""

    def __init__(self, upto):
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.path = os.path.join(os.environ.get("GANG_CHECKPOINT_DIR", "."), "squares.json")
        try:
            with open(self.path) as f:
                self.results = {int(n): r for n, r in json.load(f).items()}
        except FileNotFoundError:
            self.results = {}
        self.todo = [n for n in range(upto, 0, -1) if n not in self.results]
        self.upto = upto

    def take(self):
        with self.lock:
            return self.todo.pop() if self.todo else None

    def give_back(self, n):
        """A worker went away with it: somebody else has to do it."""
        with self.lock:
            if n is not None and n not in self.results:
                self.todo.append(n)

    def done(self, n, result):
        with self.lock:
            self.results[n] = result
            if len(self.results) == self.upto:
                self.changed.notify_all()

    def save(self):
        """Whole or not at all: a kill in the middle must not cost the file before."""
        with self.lock:
            with open(self.path + ".new", "w") as f:
                json.dump(self.results, f)
                f.flush()
                os.fsync(f.fileno())
            os.rename(self.path + ".new", self.path)

    def wait(self, stop):
        with self.lock:
            while len(self.results) < self.upto and not stop.is_set():
                self.changed.wait(0.2)
                say("STATUS=%d of %d" % (len(self.results), self.upto))
        return len(self.results) == self.upto


def coordinate(args):
    work, stop = Work(args.upto), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    begun = len(work.results)

    class Conversation(socketserver.StreamRequestHandler):
        def handle(self):
            n = None
            try:
                while True:
                    n = work.take()
                    self.wfile.write(b"%d\n" % (n or 0))  # 0: nothing just now
                    answer = self.rfile.readline().split()
                    if not answer:
                        break
                    if n is not None:
                        work.done(n, int(answer[0]))
            except OSError:
                pass
            work.give_back(n)

    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("", int(os.environ["MASTER_PORT"])), Conversation) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say("READY=1\nSTATUS=%d of %d" % (begun, args.upto))
        print("restart %s begins at %d" % (os.environ.get("GANG_RESTART_COUNT"), begun), flush=True)
        whole = work.wait(stop)
        work.save()
        if not whole:
            print("stopped at %d" % len(work.results), flush=True)
            sys.exit(1)
        print("done: the sum of the squares is %d" % sum(work.results.values()), flush=True)


def work(args):
    # Not the start barrier, which was before the first line of this, but the coordinator's word.
    say("READY=1")
    if subprocess.call(["gbarrier", "--ready=coordinator"]) != 0:
        sys.exit("the coordinator did not come up")
    with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as s:
        lines = s.makefile("r")
        count = 0
        for line in lines:
            n = int(line)
            time.sleep(args.seconds)  # the real work
            count += n > 0
            s.sendall(b"%d\n" % (n * n))
            say("STATUS=%d pieces" % count)
    # The coordinator went away. Whether that was its end or a crash gangd knows, and acts on it.
    signal.pause()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--upto", type=int, default=1000)
    args.add_argument("--seconds", type=float, default=0.01)
    args = args.parse_args()
    print("rank %s is %s %s of %s" % (os.environ["GANG_RANK"], os.environ["GANG_ROLE"], os.environ["GANG_ROLE_RANK"],
                                      os.environ["GANG_ROLE_SIZE"]), flush=True)
    {"coordinator": coordinate, "worker": work}[os.environ["GANG_ROLE"]](args)


if __name__ == "__main__":
    main()
