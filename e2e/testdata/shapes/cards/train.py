import os

e = os.environ
rank, local = int(e["SLURM_PROCID"]), int(e["SLURM_LOCALID"])
cards = e["CUDA_VISIBLE_DEVICES"].split(",")
with open("rank-%d" % rank, "w") as f:
    f.write("%d of %s, local %d, node %s, %d card, master %s\n" % (rank, e["WORLD_SIZE"], local, e["SLURM_NODEID"], len(cards), e["MASTER_ADDR"] == e["SLURM_JOB_NODELIST"].replace("[", "").split("-")[0].split(",")[0]))
with open("card-%d" % rank, "w") as f:
    f.write(cards[0] + "\n")
