import os

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
cards = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
with open("rank-%d" % rank, "w") as f:
    f.write("%d of %d, %d cards, %s threads\n" % (rank, size, len(cards), os.environ["OMP_NUM_THREADS"]))
