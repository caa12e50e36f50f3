import os

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
with open("rank-%d" % rank, "w") as f:
    f.write("%d of %d, local %s\n" % (rank, size, os.environ["LOCAL_RANK"]))
with open("node-%d" % rank, "w") as f:
    f.write(os.environ["SLURMD_NODENAME"] + "\n")
